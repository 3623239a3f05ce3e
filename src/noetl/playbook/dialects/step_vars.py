"""
Where does each of the eval dialect's `vars` live now? (DIA-S4, decision 0037)

`vars` belonged to one step run. Without a loop, `iter` is exactly that (SCOPE-2). In a sequential
loop it outlived the iteration, and a guard of `next` could read it: there it becomes a key of
`ctx` that carries the step's name. A shared write of a loop becomes a reducer (LOOP-5).
"""

import re
from typing import Literal, NamedTuple

from noetl.playbook.dialects.draft import (
    Draft,
    arcs_of,
    rules_of,
    tasks_of,
    templates_below,
    then_of,
)
from noetl.playbook.dialects.names import paths_read
from noetl.playbook.dialects.tree import Mapping, Node, TreeSlot

Scope = Literal["iter", "ctx"]


class Home(NamedTuple):
    """The scope and the key that a variable of a step has now."""

    scope: Scope
    key: str


class StepVars:
    """The variables of one step, and where each of them goes."""

    def __init__(self, step: Mapping) -> None:
        self.step = step
        self.name = re.sub(r"\W", "_", str(step.text("step") or "step"))
        self.mode = _mode_of(step)
        self.shared = {
            slot.key or "" for then in thens_of(step) for slot in _keys(then, "set_shared")
        }
        self.after = {key for arc in arcs_of(step) for key in _vars_read(arc)}
        self.taken = {
            str(path[1])
            for slot in templates_below(step)
            for path in paths_read(slot.text)
            if path[0] == "iter" and len(path) > 1
        } | {slot.key or "" for then in thens_of(step) for slot in _keys(then, "set_iter")}

    def home(self, key: str) -> Home:
        if key in self.shared or key in self.after or self.mode in ("sequential", "nested"):
            return Home("ctx", f"{self.name}_{key}")
        return Home("iter", f"vars_{key}" if key in self.taken else key)


def _mode_of(step: Mapping) -> str:
    """`sequential`, `parallel`, `nested` (a loop inside a task), or empty without any loop."""
    if any(
        isinstance(slot.node, Mapping) and slot.node.text("kind") == "iterator"
        for slot in tasks_of(step)
    ):
        return "nested"
    loop = step.mapping("loop")
    if loop is None:
        return ""
    spec = loop.mapping("spec")
    return (spec.text("mode") if spec is not None else None) or loop.text("mode") or "sequential"


def thens_of(step: Mapping) -> list[Mapping]:
    """Every directive of a step's pipeline."""
    rules = [
        rule
        for slot in tasks_of(step)
        if isinstance(slot.node, Mapping)
        for rule in rules_of(slot.node)
    ]
    return [then for rule in rules if (then := then_of(rule)) is not None]


def _keys(then: Mapping, key: str) -> list[TreeSlot]:
    written = then.mapping(key)
    return written.slots if written is not None else []


def keys_read(slot: TreeSlot) -> set[str]:
    return {str(path[1]) for path in paths_read(slot.text) if path[0] == "vars" and len(path) > 1}


def _vars_read(node: Node) -> set[str]:
    return {key for slot in templates_below(node) for key in keys_read(slot)}


def vars_of(draft: Draft, step: Mapping) -> StepVars:
    """The variables of a step, as they were before any of them was moved."""
    known = draft.homes.get(id(step))
    if not isinstance(known, StepVars):
        known = draft.homes[id(step)] = StepVars(step)
    return known
