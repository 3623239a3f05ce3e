"""Which dialects does a document speak? A mix is fine where each part can be told (DIA)."""

from typing import Literal

from noetl.playbook.dialects.names import paths_read
from noetl.playbook.dialects.tree import Mapping, Node, Scalar, slots_below

Dialect = Literal["eval", "case", "upstream"]

# Keys that only one dialect has, wherever they stand below a step or a task.
_EVAL_KEYS = frozenset({"eval", "expr", "set_vars", "set_shared", "next_mode"})
_CASE_KEYS = frozenset({"case", "sink", "retry_when", "stop_when", "max_attempts"})
_UPSTREAM_KEYS = frozenset({"on_no_match", "return_step", "set", "input", "output"})
_EVAL_ROOTS = frozenset({"token"})
_UPSTREAM_ROOTS = frozenset({"output"})


def dialects_of(node: Node) -> frozenset[Dialect]:
    """The older dialects that have left a mark in a document, or in one of its steps."""
    found: set[Dialect] = set()
    if isinstance(node, Mapping):
        found |= _marks_of_step(node)
    for slot in slots_below(node):
        if slot.key in _EVAL_KEYS:
            found.add("eval")
        elif slot.key in _CASE_KEYS:
            found.add("case")
        elif slot.key in _UPSTREAM_KEYS:
            found.add("upstream")
        if isinstance(slot.node, Mapping):
            found |= _marks_of_step(slot.node)
        elif isinstance(slot.node, Scalar):
            roots = {path[0] for path in paths_read(slot.text)}
            found |= {"eval"} if roots & _EVAL_ROOTS else set()
            found |= {"upstream"} if roots & _UPSTREAM_ROOTS else set()
    return frozenset(found)


def _marks_of_step(node: Mapping) -> set[Dialect]:
    """What only a step can show: its own guard, one tool, guarded arcs in a list, `vars`."""
    if "step" not in node:
        return set()
    found: set[Dialect] = set()
    if "tool" in node or "next" in node:
        if "when" in node:
            found.add("eval")
        if "vars" in node or "retry" in node or node.mapping("tool") is not None:
            found.add("case")
        arcs = node.sequence("next")
        if arcs is not None and any("when" in arc for arc in arcs.mappings()):
            found.add("eval")
    return found
