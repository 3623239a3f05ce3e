"""From the cases and the fallback of a step to its one router (S2 §8.2, §9, NEXT-1)."""

from noetl.playbook.dialects.case_entries import CaseEntry, targets_of
from noetl.playbook.dialects.draft import Draft, arcs_of
from noetl.playbook.dialects.guards import BOTH, FALSE, TRUE, End, all_of, negation, renamed
from noetl.playbook.dialects.pipeline import guard_slot
from noetl.playbook.dialects.shapes import brace_guard, list_mode, next_as_router
from noetl.playbook.dialects.tree import Mapping, Sequence, TreeSlot, flowing

NOT_FAILED = "event.name != 'step.failed'"


class Routes:
    """The arcs of one step, in the order in which they are asked."""

    def __init__(self, success: str) -> None:
        self.success = success
        """The event in which the step ends when all went well."""
        self.arcs: list[TreeSlot] = []
        self.inclusive = False
        self.earlier: list[CaseEntry] = []

    def add(self, entry: CaseEntry) -> None:
        """The arcs of one entry of a case."""
        guard = renamed(entry.expression, self.success)
        if entry.targets:
            fails = entry.at("error") != FALSE
            others = self._others(entry)
            alone = not fails and entry.at("ok") == TRUE
            whole = all_of([TRUE if alone and not others else guard, *others])
            for target in entry.targets:
                self._put(target, whole, alone and whole == TRUE, entry)
        self.earlier.append(entry)

    def _others(self, entry: CaseEntry) -> list[str]:
        """What must not have matched: in a router that takes every match, all that could have."""
        ends = [end for end in BOTH if entry.at(end) != FALSE]
        return [
            self._not(one, ends)
            for one in self.earlier
            if (one.blocks or (self.inclusive and one.targets))
            and any(one.at(end) != FALSE for end in ends)
        ]

    def _not(self, entry: CaseEntry, ends: list[End]) -> str:
        """Not an earlier entry, at the ends that are asked for."""
        expression = entry.at(ends[0]) if len(ends) == 1 else entry.expression
        return negation(renamed(expression, self.success))

    def _put(self, target: TreeSlot, guard: str, bare: bool, entry: CaseEntry) -> None:
        arc = target.node
        assert isinstance(arc, Mapping)
        if not bare:
            arc.slots.insert(arc.place("step") + 1, guard_slot(guard, entry.guard))
            arc.flow = False
        self.arcs.append(target)

    def fall_back(self, targets: list[TreeSlot]) -> None:
        """`next` beside a `case`: where no entry has matched after a success (NEXT-3)."""
        guards = [
            self._not(one, ["ok"])
            for one in self.earlier
            if one.at("ok") != FALSE and (one.blocks or (self.inclusive and one.targets))
        ]
        for target in targets:
            arc = target.node
            assert isinstance(arc, Mapping)
            if guards:
                arc.slots.insert(
                    arc.place("step") + 1, guard_slot(all_of([NOT_FAILED, *guards]), target)
                )
                arc.flow = False
            self.arcs.append(target)

    def router(self, like: TreeSlot) -> Mapping:
        router = Mapping(line=like.line)
        if self.inclusive:
            router.put("spec", flowing({"mode": "inclusive"}, like.line)).line = like.line
        arcs = router.put("arcs", Sequence(self.arcs, line=like.line))
        arcs.line, arcs.path = like.line, like.path
        return router


def route_cases(draft: Draft, step: Mapping, entries: list[CaseEntry], success: str) -> None:
    """Give a step its router, from its cases and its `next`."""
    case, after = step.slot("case"), step.slot("next")
    assert case is not None
    fallback = (targets_of(draft, after) if after is not None else None) or []
    routes = Routes(success)
    routes.inclusive = max([len(fallback), *(len(one.targets) for one in entries)]) > 1
    for entry in entries:
        routes.add(entry)
    routes.fall_back(fallback)
    if routes.arcs:
        slot = after or TreeSlot(
            case.node, key="next", key_text="next", line=case.line, path=case.path
        )
        slot.node = routes.router(slot)
        if after is None:
            step.slots.insert(step.place("case"), slot)
        draft.tell(case, "case", "next: { arcs: [ … ] }", now=slot)
    elif after is not None:
        step.pop("next")
    step.pop("case")


def router_of_next(draft: Draft, step: Mapping) -> None:
    """`next` as a name, a list or one arc, and `spec.next_mode` → `next.spec.mode` and `arcs`."""
    slot = step.slot("next")
    if slot is not None and "case" not in step:
        if _has_conditions(slot):
            targets_of(draft, slot)
            return
        mode = list_mode(draft, step)
        if isinstance(slot.node, Sequence) and mode == "open":
            draft.refuse(
                slot,
                "the arcs of this list have no guards, and the document mixes dialects: in one all "
                "of them fire, in the other the first",
                "write spec: { next_mode: inclusive } or exclusive in the step",
            )
            return
        router = next_as_router(slot)
        if router is not None:
            if mode == "inclusive":
                router.put("spec", flowing({"mode": "inclusive"}), at=0)
            own = draft.spoken(step) or draft.dialects
            code = "case-next" if "case" in draft.dialects and "eval" not in own else ""
            draft.tell(slot, "next: [ … ]", "next: { arcs: [ … ] }", code=code)
    for arc in arcs_of(step):
        brace_guard(draft, arc)
    _mode_of_spec(draft, step)


def _has_conditions(after: TreeSlot) -> bool:
    """`then` and `else` are no keys of an arc in any dialect."""
    node = after.node
    return isinstance(node, Sequence) and any(
        "then" in entry or "else" in entry for entry in node.mappings()
    )


def _mode_of_spec(draft: Draft, step: Mapping) -> None:
    """`spec.next_mode` → `next.spec.mode`; a spec that held nothing else goes with it."""
    spec, router = step.mapping("spec"), step.mapping("next")
    mode = spec.pop("next_mode") if spec is not None else None
    if spec is None or mode is None:
        return
    if not spec.slots:
        step.pop("spec")
    if router is None:
        draft.tell(mode, "spec.next_mode", "", now=step.slots[-1])
        return
    made = router.slot("spec") or router.put("spec", flowing({}), at=0)
    assert isinstance(made.node, Mapping)
    made.line, made.path = made.line or mode.line, made.path or mode.path
    if "mode" not in made.node:
        made.node.put("mode", mode.node)
    draft.tell(mode, "spec.next_mode", "next.spec.mode", now=made)
