"""Which dialects does a document speak? A mix is fine where each part can be told (DIA)."""

from collections.abc import Iterable, Iterator
from typing import Literal

from noetl.playbook.dialects.names import paths_read
from noetl.playbook.dialects.tree import Mapping, Node, Scalar, Sequence, TreeSlot, slots_below

Dialect = Literal["eval", "case", "upstream"]

# Keys that only one dialect has, of a step or of something inside of its blocks. What an author
# names himself (a key of workload, args, params, a body) says nothing.
_CASE_KEYS = frozenset({"case", "sink", "retry_when", "stop_when", "max_attempts"})
_MARKS: dict[str | None, Dialect] = {
    **dict.fromkeys(("eval", "expr", "set_vars", "set_shared", "next_mode"), "eval"),
    **dict.fromkeys(_CASE_KEYS, "case"),
    **dict.fromkeys(("on_no_match", "return_step", "set", "input", "output"), "upstream"),
}
_CASE_STEP_KEYS = frozenset({"vars", "retry"})
_ROOTS: dict[str | int, Dialect] = {"token": "eval", "output": "upstream"}
_FREE = frozenset(
    {"args", "params", "body", "headers", "form", "payload", "data", "json", "env", "value"}
    | {"set_ctx", "set_iter", "set_prev", "set_vars", "set_shared", "set", "vars", "query"}
    | {"input", "inputs", "with", "table"}
)
"""Blocks whose keys are the author's own."""


def dialects_of(root: Mapping, steps: Iterable[frozenset[Dialect]]) -> frozenset[Dialect]:
    """The older dialects that have left a mark in a document; those of its steps are known."""
    found = {dialect for spoken in steps for dialect in spoken}
    for held in root.slots:
        if held.key in ("workbook", "executor"):
            found |= _marks_below(held.node)
        for slot in slots_below(held.node) if held.key != "workflow" else ():
            found |= _marks_of_text(slot)
    return frozenset(found)


def dialects_of_step(step: Mapping) -> frozenset[Dialect]:
    """The older dialects that have left a mark in one step."""
    found = _marks_of_step(step) | _marks_below(step)
    for slot in slots_below(step):
        found |= _marks_of_text(slot)
    return frozenset(found)


def _steps(root: Mapping) -> list[Mapping]:
    workflow = root.sequence("workflow")
    return workflow.mappings() if workflow is not None else []


def _marks_below(node: Node) -> set[Dialect]:
    return {_MARKS[slot.key] for slot in _own_slots(node) if slot.key in _MARKS}


def _own_slots(node: Node) -> Iterator[TreeSlot]:
    """The slots below a node, but for those whose keys the author has chosen."""
    waiting = [node]
    while waiting:
        held = waiting.pop()
        for slot in [] if isinstance(held, Scalar) else held.slots:
            yield slot
            if slot.key not in _FREE:
                waiting.append(slot.node)


def _marks_of_text(slot: TreeSlot) -> set[Dialect]:
    return {_ROOTS[path[0]] for path in paths_read(slot.text) if path[0] in _ROOTS}


def _marks_of_step(node: Mapping) -> set[Dialect]:
    """What only a step can show: its own guard, one tool, guarded arcs in a list, `vars`."""
    found: set[Dialect] = set()
    if "step" in node and ("tool" in node or "next" in node):
        if "when" in node:
            found.add("eval")
        if "vars" in node or "retry" in node or node.mapping("tool") is not None:
            found.add("case")
        arcs = node.sequence("next")
        if arcs is not None and any("when" in arc for arc in arcs.mappings()):
            found.add("eval")
    return found


def speaks_case(root: Mapping, dialects: frozenset[Dialect]) -> bool:
    """Whether the document holds words that only the case dialect has."""
    steps = _steps(root)
    blocks: list[Node] = [*steps, *(node for node in [root.node("workbook")] if node is not None)]
    # Public playbooks have `max_attempts` in a retry of their own.
    keys = _CASE_KEYS - {"max_attempts"}
    if any(slot.key in keys for node in blocks for slot in _own_slots(node)):
        return True
    if any(key in step for step in steps for key in _CASE_STEP_KEYS):
        return True
    texts = (slot.text for slot in slots_below(root) if isinstance(slot.node, Scalar))
    reads = any(path[0] == "vars" for text in texts for path in paths_read(text))
    return "eval" not in dialects and "vars" not in root and reads


def variables_of(step: Mapping) -> Iterator[TreeSlot]:
    """What a step writes by `vars`, or by `set` of a case."""
    given = step.mapping("vars")
    yield from given.slots if given is not None else ()
    cases = step.node("case")
    for entry in cases.mappings() if isinstance(cases, Sequence) else ():
        then = entry.mapping("then")
        for key in ("set", "vars"):
            written = then.mapping(key) if then is not None else None
            yield from written.slots if written is not None else ()
        into = (then.mapping("collect") or Mapping()).text("into") if then is not None else None
        yield from [TreeSlot(entry, into)] if into else []
