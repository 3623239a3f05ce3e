"""
Where does the eval dialect's `vars` live now? (DIA-S4)

`vars` belonged to one step run. Without a loop, `iter` is exactly that (SCOPE-2). In a sequential
loop it outlived the iteration, and a guard of `next` could read it: there it becomes a key of
`ctx` that carries the step's name. A shared write of a loop becomes a reducer (LOOP-5).
"""

import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from noetl.playbook.blocks import REDUCERS
from noetl.playbook.dialects.draft import (
    Draft,
    arcs_of,
    respell,
    rules_of,
    shown,
    tasks_of,
    templates_below,
    then_of,
)
from noetl.playbook.dialects.names import Respelling, paths_read, respelled
from noetl.playbook.dialects.rewrite import Rewriting
from noetl.playbook.dialects.tree import Mapping, Node, Slot

Change = Callable[[str], str]
Scope = Literal["iter", "ctx"]

# Other words for reducers that shared writes are met with.
_REDUCERS: dict[str, str] = {
    **{word: word for word in REDUCERS},
    "add": "sum",
    "inc": "sum",
    "increment": "sum",
    "push": "append",
    "concat": "extend",
    "update": "merge",
    "set": "last",
    "replace": "last",
}
_OPERATION = ("op", "reducer", "mode", "reduce")


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


def _keys(then: Mapping, key: str) -> list[Slot]:
    written = then.mapping(key)
    return written.slots if written is not None else []


def _vars_read(node: Node) -> set[str]:
    return {
        str(path[1])
        for slot in templates_below(node)
        for path in paths_read(slot.text)
        if path[0] == "vars" and len(path) > 1
    }


def move_vars(draft: Draft, step: Mapping) -> None:
    """Shared writes, writes and reads of one step, all by the same homes."""
    known = StepVars(step)
    for then in thens_of(step):
        _share_writes(draft, known, then)
        _move_writes(draft, known, then)
    for slot in templates_below(step):
        _move_reads(draft, known, slot)


def _share_writes(draft: Draft, known: StepVars, then: Mapping) -> None:
    """`set_shared` → `set_ctx`, and a reducer of the loop."""
    shared = then.slot("set_shared")
    if shared is None:
        return
    if not isinstance(shared.node, Mapping):
        draft.refuse(shared, "'set_shared' is no mapping", "write set_shared: { key: value }")
        return
    for slot in shared.node.slots:
        _share(draft, known, then, slot, shared.node.flow)
    at = then.place("set_shared")
    then.pop("set_shared")
    draft.tell(shared, "set_shared", "set_ctx", now=_lend_place(then, "set_ctx", shared, at))


def _lend_place(then: Mapping, key: str, former: Slot, at: int) -> Slot | None:
    """The new slot stands where the former stood, with its comments."""
    slot = then.slot(key)
    if slot is None or slot.path:
        return slot
    slot.line, slot.path, slot.before, slot.beside = (
        former.line,
        former.path,
        former.before,
        former.beside,
    )
    then.slots.remove(slot)
    then.slots.insert(min(at, len(then.slots)), slot)
    return slot


def _share(draft: Draft, known: StepVars, then: Mapping, slot: Slot, flow: bool) -> None:
    reducer, value = _reduction(slot)
    key = known.home(slot.key or "").key
    loop = known.step.mapping("loop")
    if reducer is None:
        draft.refuse(
            slot,
            f"the shared write of '{slot.key}' names no way to combine values",
            f"write {slot.key}: {{ sum: … }}, with one of {', '.join(REDUCERS)}",
        )
        return
    if loop is None and reducer != "last":
        draft.refuse(
            slot,
            f"the shared write of '{slot.key}' stands in no loop, so there is nothing to reduce",
            "write set_ctx with the whole new value",
        )
        return
    target = _target(then, "set_ctx", flow)
    if key in target:
        draft.refuse(slot, f"'{key}' is written twice by one rule", "rename one of the two keys")
        return
    target.put(key, value, like=slot)
    if loop is None:
        return
    reduce = loop.within("spec", like=slot).within("policy", like=slot).within("reduce", like=slot)
    former = reduce.text(key)
    if former is None:
        reduce.put(key, reducer)
    elif former != reducer:
        draft.refuse(
            slot,
            f"'{slot.key}' is reduced by '{former}' elsewhere in this loop, here by '{reducer}'",
            "use one reducer for one key",
        )


def _reduction(slot: Slot) -> tuple[str | None, Any]:
    """The reducer and the value of a shared write; a plain value replaces: `last`."""
    node = slot.node
    if not isinstance(node, Mapping):
        return "last", node
    named = next((node.text(word) for word in _OPERATION if node.text(word)), None)
    if named is not None and "value" in node:
        return _REDUCERS.get(named), node.node("value")
    if len(node.slots) == 1:
        return _REDUCERS.get(node.slots[0].key or ""), node.slots[0].node
    return None, node


def _move_writes(draft: Draft, known: StepVars, then: Mapping) -> None:
    """`set_vars` → `set_iter` or `set_ctx`."""
    written = then.slot("set_vars")
    if written is None or not isinstance(written.node, Mapping):
        return
    scopes = {known.home(slot.key or "").scope for slot in written.node.slots}
    for slot in written.node.slots:
        _move(draft, known, then, slot, written.node.flow)
    at = then.place("set_vars")
    then.pop("set_vars")
    for scope in sorted(scopes):
        place = _lend_place(then, f"set_{scope}", written, at)
        draft.tell(written, "set_vars", f"set_{scope}", now=place)


def _target(then: Mapping, key: str, flow: bool) -> Mapping:
    """Where writes go; a new mapping is in the style of the one that it stands for."""
    is_new = key not in then
    target = then.within(key)
    target.flow = flow if is_new else target.flow
    return target


def _move(draft: Draft, known: StepVars, then: Mapping, slot: Slot, flow: bool) -> None:
    key = slot.key or ""
    if known.mode == "parallel" and key in known.after and key not in known.shared:
        draft.refuse(
            slot,
            f"each iteration of a parallel loop writes 'vars.{key}', and 'next' reads it: which "
            "value is meant is open",
            f"write set_shared: {{ {key}: {{ last: … }} }}, or another reducer",
        )
    home = known.home(key)
    target = _target(then, f"set_{home.scope}", flow)
    if home.key in target:
        draft.refuse(slot, f"'{home.key}' is written twice by one rule", "rename one of the two")
        return
    target.put(home.key, slot.node, like=slot)


def _move_reads(draft: Draft, known: StepVars, slot: Slot) -> None:
    """`vars.x` in a template."""
    if any(path == ("vars",) for path in paths_read(slot.text)):
        draft.refuse(
            slot,
            "the template uses `vars` as a whole, and its keys now live in other scopes",
            "name the keys: vars.name",
        )
    old = slot.text
    if respell(slot, lambda text: respelled(text, _respell(known))):
        draft.tell(slot, shown(old), shown(slot.text))


def _respell(known: StepVars) -> Callable[[tuple[str | int, ...]], Respelling | None]:
    def respell_path(path: tuple[str | int, ...]) -> Respelling | None:
        if path[0] != "vars" or len(path) < 2:
            return None
        home = known.home(str(path[1]))
        return Respelling(2, f"{home.scope}.{home.key}")

    return respell_path


TABLE: tuple[Rewriting, ...] = (
    Rewriting(
        "eval-vars",
        "step",
        move_vars,
        "`vars` of one step run is `iter` now; what outlives an iteration or is read by `next` is "
        "a key of `ctx`, and what iterations share is reduced by the loop.",
    ),
)
