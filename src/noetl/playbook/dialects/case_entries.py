"""`case` of the case dialect: its entries become arcs, writes, sinks and retries (S2 §8)."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field

from noetl.messages.names import canonical
from noetl.playbook.dialects.draft import Draft
from noetl.playbook.dialects.guards import (
    ENDS,
    FALSE,
    TRUE,
    End,
    comparisons_in,
    expression_of,
    guard_of,
    settled,
)
from noetl.playbook.dialects.names import paths_read
from noetl.playbook.dialects.tree import Mapping, Node, Scalar, Sequence, TreeSlot, node_of, plain

OTHERWISE = "event.name == 'step.exit'"
"""`else` of a case: a way on after a success, as `next` is (NEXT-3)."""
_ACTIONS = ("next", "sink", "set", "vars", "retry")
_EVENT_KEYS = ("name", "step", "result", "error", "loop")
_OF_FAILURES = ("error", "status", "status_code", "success")
_IN_CALLS = ("call.done", "call.error")


@dataclass
class CaseEntry:
    """One entry of a `case`: its guard, and what it asks for."""

    slot: TreeSlot
    expression: str
    targets: list[TreeSlot] = field(default_factory=list)
    actions: dict[str, TreeSlot] = field(default_factory=dict)

    @property
    def guard(self) -> TreeSlot:
        """Where its guard stands; its own place where it has none."""
        held = self.slot.node.slot("when") if isinstance(self.slot.node, Mapping) else None
        return held or self.slot

    def at(self, end: End) -> str:
        """What is left of the guard at one end of the step."""
        return settled(self.expression, end)

    @property
    def in_call(self) -> bool:
        """Whether it only reacts to the call of the tool, not to the end of the step."""
        names = {name for one in comparisons_in(self.expression) for name in one.names}
        return bool(names) and names <= set(_IN_CALLS)

    @property
    def minds_failures(self) -> bool:
        """Whether its guard speaks of failures; others are about results, which those lack."""
        if self.at("error") in (FALSE, TRUE):
            return self.at("error") == TRUE
        named = any(
            ENDS.get(canonical(name)) == "error"
            for one in comparisons_in(self.expression)
            for name in one.names
        )
        return named or any(
            path[0] in ("response", "this") and len(path) > 1 and path[1] in _OF_FAILURES
            for path in paths_read(guard_of(self.expression))
        )

    def taken(self, action: str) -> TreeSlot | None:
        """A copy of what it asks for: both ends of a step may need it, each in its own words."""
        return deepcopy(self.actions.get(action))

    @property
    def blocks(self) -> bool:
        """Whether a match leads nowhere: nothing below it is asked any more (S2 §8.2)."""
        return not self.targets and not self.in_call


def entries_of(draft: Draft, case: TreeSlot) -> list[CaseEntry] | None:
    """The entries of a `case`; None where one of them cannot be read."""
    if not isinstance(case.node, Sequence):
        draft.refuse(case, "'case' is no list", 'write case: [ { when: "{{ … }}", then: { … } } ]')
        return None
    found = [_entry(draft, slot) for slot in case.node.slots]
    return None if None in found else [entry for entry in found if entry is not None]


def _entry(draft: Draft, slot: TreeSlot) -> CaseEntry | None:
    node = slot.node if isinstance(slot.node, Mapping) else Mapping()
    guard, then = node.slot("when"), node.slot("then")
    otherwise = node.slot("else")
    if otherwise is not None and guard is None:
        inside = otherwise.node
        held = inside.slot("then") if isinstance(inside, Mapping) else None
        then = held or (otherwise if then is None else then)
    elif guard is None:
        draft.refuse(slot, "an entry of a case has no 'when'", 'write when: "{{ … }}", then: { … }')
        return None
    if then is not None and isinstance(then.node, Sequence):
        then.node = _merged(then.node)
    if then is None or not isinstance(then.node, Mapping):
        draft.refuse(then or slot, "'then' of a case is no mapping", "write then: { next: … }")
        return None
    expression = OTHERWISE if guard is None else expression_of(plain(guard.node))
    if expression is None:
        draft.refuse(guard or slot, "'when' is not one expression", 'write when: "{{ … }}"')
        return None
    if not (_knows_events(draft, guard or slot, expression) and _knows_actions(draft, then.node)):
        return None
    entry = CaseEntry(slot, expression)
    for one in then.node.slots:
        if one.key == "next":
            targets = targets_of(draft, one)
            if targets is None:
                return None
            entry.targets = targets
        else:
            entry.actions["set" if one.key == "vars" else one.key or ""] = one
    return entry


def _merged(listed: Sequence) -> Node:
    """`then` as a list: its entries together, as long as none says twice what to do."""
    entries = listed.mappings()
    keys = [slot.key for entry in entries for slot in entry.slots]
    if len(entries) < len(listed.slots) or len(set(keys)) < len(keys):
        return listed
    return Mapping([slot for entry in entries for slot in entry.slots], line=listed.line)


def _knows_events(draft: Draft, slot: TreeSlot, expression: str) -> bool:
    """Every event that the guard waits for ends a step."""
    for one in comparisons_in(expression):
        for name in one.names:
            if canonical(name) not in ENDS:
                draft.refuse(
                    slot,
                    f"the case waits for '{name}', which ends no step",
                    "wait for 'step.exit', 'call.done' or 'call.error'",
                )
                return False
    for path in paths_read(guard_of(expression)):
        if path[0] == "event" and (len(path) < 2 or path[1] not in _EVENT_KEYS):
            said = ".".join(map(str, path[:2]))
            draft.refuse(
                slot, f"`{said}` is not known here", f"an event has {', '.join(_EVENT_KEYS)}"
            )
            return False
    return True


def _knows_actions(draft: Draft, then: Mapping) -> bool:
    unknown = [slot for slot in then.slots if slot.key not in _ACTIONS]
    for slot in unknown:
        draft.refuse(
            slot,
            f"'{slot.key}' in 'then' of a case has no counterpart",
            f"a case knows {', '.join(_ACTIONS)}",
        )
    return not unknown


def targets_of(draft: Draft, slot: TreeSlot) -> list[TreeSlot] | None:
    """The arcs of `next`: a name, a mapping, or a list of them. None where one is refused."""
    node = slot.node
    if isinstance(node, Mapping) and isinstance(node.node("arcs"), Sequence):
        node = node.node("arcs") or node
    entries = node.slots if isinstance(node, Sequence) else [slot]
    found = [_target(draft, entry) for entry in entries]
    return None if None in found else [one for one in found if one is not None]


def _target(draft: Draft, slot: TreeSlot) -> TreeSlot | None:
    node = slot.node
    if isinstance(node, Scalar) and isinstance(node.value, str):
        name = TreeSlot(node, key="step", line=slot.line, path=slot.path, beside=slot.beside)
        node = node_of({"step": name}, slot.line)
        before = slot.before if slot.key is None else []
        return TreeSlot(node, line=slot.line, path=slot.path, before=before)
    wrong = _conditional(node) if isinstance(node, Mapping) else None
    if wrong is not None:
        draft.refuse(wrong, *CONDITIONAL)
        return None
    if not isinstance(node, Mapping) or "step" not in node:
        draft.refuse(slot, "an entry of 'next' names no step", "write next: [ { step: … } ]")
        return None
    node.flow = node.flow and len(node.slots) == 1
    return TreeSlot(node, line=slot.line, path=slot.path, before=slot.before, beside=slot.beside)


# S2 §9.2: rejected there, and rejected here.
CONDITIONAL = (
    "'next' holds a condition, which the case dialect rejects",
    'write case: [ { when: "{{ … }}", then: { next: [ { step: … } ] } } ], and next for the rest',
)


def _conditional(node: Mapping) -> TreeSlot | None:
    return next((slot for key in ("then", "else", "when") if (slot := node.slot(key))), None)


def acting(entries: list[CaseEntry], end: End) -> Iterator[tuple[CaseEntry, str]]:
    """The entries that count at one end, with what is left of their guards."""
    for entry in entries:
        expression = entry.at(end)
        if expression != FALSE:
            yield entry, expression
            if expression == TRUE:
                return
