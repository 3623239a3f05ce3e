"""Which steps have surely run, and given a result, where another one begins? (DIA-UP)"""

from noetl.expression.syntax import is_template
from noetl.playbook.dialects.draft import Draft, arcs_of, below_path
from noetl.playbook.dialects.guards import FALSE, expression_of, settled
from noetl.playbook.dialects.tree import Mapping, Sequence, plain


class Reach:
    """
    The arcs of a document, and what is certain at each step.

    A set of steps is a number, one bit for each. What is certain at a step is what is certain
    after every arc that leads there; an arc for failures adds nothing.
    """

    def __init__(self, draft: Draft) -> None:
        self.numbers = {step.text("step") or "": n for n, step in enumerate(draft.steps())}
        self.certain: list[int] = []
        self._draft = draft

    def has_run(self, name: str, reader: Mapping | None) -> bool:
        """Whether the step has given its result by the time that the reader runs."""
        if reader is None or name not in self.numbers:
            return True
        if not self.certain:
            self._flow()
        at = self.numbers.get(reader.text("step") or "")
        return at is None or bool(self.certain[at] >> self.numbers[name] & 1)

    def may_be_empty(self, step: Mapping) -> bool:
        """Whether the collection of a loop may have no element."""
        loop = step.mapping("loop") or Mapping()
        listed = loop.node("in")
        return not (isinstance(listed, Sequence) and listed.slots)

    def _flow(self) -> None:
        """From the first step on, until nothing gets less certain."""
        steps = self._draft.steps()
        self.certain = [(1 << len(steps)) - 1] * len(steps)
        arcs = [self._arcs(step) for step in steps]
        spec = below_path(self._draft.root, "executor", "spec")
        named = (spec.text("entry_step") if spec is not None else None) or "start"
        entry = self.numbers.get(named, 0)
        self.certain[entry] = 0
        waiting, seen = [entry], {entry}
        while waiting:
            at = waiting.pop()
            for target, succeeds in arcs[at]:
                kept = self.certain[target] & (self.certain[at] | (1 << at if succeeds else 0))
                if kept != self.certain[target] or target not in seen:
                    seen.add(target)
                    self.certain[target] = kept
                    waiting.append(target)

    def _arcs(self, step: Mapping) -> list[tuple[int, bool]]:
        """The numbers of the steps that follow, and whether the arc is for a success."""
        found: list[tuple[int, bool]] = []
        for arc in arcs_of(step):
            target = self.numbers.get(arc.text("step") or "")
            if target is not None:
                found.append((target, _after_success(arc)))
        return found


def _after_success(arc: Mapping) -> bool:
    guard = arc.node("when")
    if guard is None or not is_template(plain(guard)):
        return True
    expression = expression_of(plain(guard))
    return expression is None or settled(expression, "ok") != FALSE
