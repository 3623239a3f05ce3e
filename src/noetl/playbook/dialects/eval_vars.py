"""
Moving the eval dialect's `vars`: shared writes and writes, by the homes that they have now.

What cannot keep its meaning is refused, or told as a warning (DIA-S4, decision 0037).
"""

from typing import Any

from noetl.playbook.blocks import REDUCERS
from noetl.playbook.dialects.draft import Draft, arcs_of, templates_below
from noetl.playbook.dialects.step_vars import StepVars, keys_read, thens_of, vars_of
from noetl.playbook.dialects.tree import Mapping, TreeSlot

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


def move_vars(draft: Draft, step: Mapping) -> None:
    """Shared writes and writes of one step, by the homes that its reads get too."""
    known = vars_of(draft, step)
    _warn_of_kept(draft, known)
    _refuse_early_reads(draft, known)
    for then in thens_of(step):
        _share_writes(draft, known, then)
        _move_writes(draft, known, then)


def _warn_of_kept(draft: Draft, known: StepVars) -> None:
    """`ctx` outlives the step run: a step that runs again finds what it wrote before."""
    kept = [
        (slot, key)
        for slot in templates_below(known.step.node("tool") or Mapping())
        for key in sorted(keys_read(slot))
        if known.home(key).scope == "ctx"
    ]
    if not kept or known.step.text("step") not in draft.fact(
        "repeated", lambda: steps_on_circles(draft)
    ):
        return
    for slot, key in kept:
        draft.refuse(
            slot,
            f"'vars.{key}' was new in each run of the step; 'ctx.{known.home(key).key}' keeps its "
            "value when the step runs again",
            "set it at the beginning of the pipeline if it must not",
            code="changed-meaning",
        )


def _refuse_early_reads(draft: Draft, known: StepVars) -> None:
    """LOOP-5: a reduced value is there when the loop has ended, not before."""
    if known.step.mapping("loop") is None:
        return
    for slot in templates_below(known.step.node("tool") or Mapping()):
        for key in sorted(keys_read(slot) & known.shared):
            draft.refuse(
                slot,
                f"the pipeline reads 'vars.{key}', which iterations write together: its value is "
                "known only when the loop has ended",
                "read it in 'next' or in a later step",
            )


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


def _lend_place(then: Mapping, key: str, former: TreeSlot, at: int) -> TreeSlot | None:
    """The new slot stands where the former stood, with its comments."""
    slot = then.slot(key)
    if slot is None:
        return None
    if slot.path:
        slot.inherit(former)
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


def _share(draft: Draft, known: StepVars, then: Mapping, slot: TreeSlot, flow: bool) -> None:
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
    if isinstance(slot.node, Mapping):
        slot.inherit(*slot.node.slots)
        slot.before += [line for line in slot.node.tail if line]
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


def _reduction(slot: TreeSlot) -> tuple[str | None, Any]:
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


def _move(draft: Draft, known: StepVars, then: Mapping, slot: TreeSlot, flow: bool) -> None:
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


Arcs = dict[str, set[str]]


def steps_on_circles(draft: Draft) -> set[str]:
    """The steps on circles, and those between two: an arc of a circle leads in, and one out."""
    arcs = {
        step.text("step") or "": {arc.text("step") or "" for arc in arcs_of(step)}
        for step in draft.steps()
    }
    return set(_without_ends(_turned(_without_ends(arcs))))


def _turned(arcs: Arcs) -> Arcs:
    """The same arcs, the other way round."""
    turned: Arcs = {name: set() for name in arcs}
    for name, targets in arcs.items():
        for target in targets & arcs.keys():
            turned[target].add(name)
    return turned


def _without_ends(arcs: Arcs) -> Arcs:
    """What is left when steps without an arc to what is left are taken away."""
    into = _turned(arcs)
    left = {name: targets & arcs.keys() for name, targets in arcs.items()}
    ends = [name for name, targets in left.items() if not targets]
    while ends:
        gone = ends.pop()
        del left[gone]
        for source in into[gone] & left.keys():
            left[source].discard(gone)
            if not left[source]:
                ends.append(source)
    return left
