"""
Moving the eval dialect's `vars`: shared writes and writes, by the homes that they have now.

What cannot keep its meaning is refused, or told as a warning (DIA-S4, decision 0037).
"""

from noetl.playbook.blocks import REDUCERS
from noetl.playbook.dialects.draft import Draft, arcs_of, templates_below
from noetl.playbook.dialects.step_vars import StepVars, keys_read, thens_of, vars_of
from noetl.playbook.dialects.tree import Mapping, Node, TreeSlot

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
        for word in ("set_shared", "set_vars"):
            _move_block(draft, known, then, word)


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


def _move_block(draft: Draft, known: StepVars, then: Mapping, word: str) -> None:
    """`set_shared` and `set_vars` of a directive → `set_iter` and `set_ctx`, where they stood."""
    block = then.slot(word)
    if block is None or not isinstance(block.node, Mapping):
        if block is not None and word == "set_shared":
            draft.refuse(block, "'set_shared' is not a mapping", "write set_shared: { key: value }")
        return
    at = then.place(word)
    then.pop(word)
    for slot in block.node.slots:
        home = known.home(slot.key or "")
        value = _reduced(draft, known, slot) if word == "set_shared" else slot.node
        if word == "set_vars" and known.mode == "parallel" and slot.key in known.after:
            _refuse_open(draft, known, slot)
        key = f"set_{home.scope}"
        held = then.slot(key)
        if held is None:
            held = then.put(key, Mapping(line=block.line, flow=block.node.flow), like=block, at=at)
            at += 1
        assert isinstance(held.node, Mapping)
        if value is not None and home.key in held.node:
            said = f"'{home.key}' is written twice by one rule"
            draft.refuse(slot, said, "rename one of the two")
        elif value is not None:
            held.node.put(home.key, value, like=slot)
        draft.tell(block, word, key, now=held)


def _refuse_open(draft: Draft, known: StepVars, slot: TreeSlot) -> None:
    if slot.key not in known.shared:
        draft.refuse(
            slot,
            f"each iteration of a parallel loop writes 'vars.{slot.key}', and 'next' reads it: "
            "it is not clear which value is meant",
            f"write set_shared: {{ {slot.key}: {{ last: … }} }}, or another reducer",
        )


def _reduced(draft: Draft, known: StepVars, slot: TreeSlot) -> Node | None:
    """The value of a shared write; its reducer is the loop's."""
    reducer, value = _reduction(slot)
    loop, key = known.step.mapping("loop"), known.home(slot.key or "").key
    if reducer is None:
        draft.refuse(
            slot,
            f"the shared write of '{slot.key}' names no way to combine values",
            f"write {slot.key}: {{ sum: … }}, with one of {', '.join(REDUCERS)}",
        )
        return None
    if loop is None and reducer != "last":
        draft.refuse(
            slot,
            f"the shared write of '{slot.key}' is not inside a loop, so there is nothing to reduce",
            "write set_ctx with the whole new value",
        )
        return None
    if loop is None:
        return value
    policy = loop.within("spec", like=slot).within("policy", like=slot)
    reduce = policy.within("reduce", like=slot)
    former = reduce.text(key)
    if former is None:
        reduce.put(key, reducer)
    elif former != reducer:
        draft.refuse(
            slot,
            f"'{slot.key}' is reduced by '{former}' elsewhere in this loop, here by '{reducer}'",
            "use one reducer for one key",
        )
    return value


def _reduction(slot: TreeSlot) -> tuple[str | None, Node]:
    """The reducer and the value of a shared write; a plain value replaces: `last`."""
    node = slot.node
    if not isinstance(node, Mapping):
        return "last", node
    named = next((node.text(word) for word in _OPERATION if node.text(word)), None)
    if named is not None and "value" in node:
        return _REDUCERS.get(named), node.node("value") or node
    if len(node.slots) == 1:
        return _REDUCERS.get(node.slots[0].key or ""), node.slots[0].node
    return None, node


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
