"""Where does a template stand, and which names does it find there? (DIA-UP)"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from noetl.playbook.dialects.draft import Draft, rules_of, templates_below, then_of
from noetl.playbook.dialects.tree import Mapping, Slot, slots_below
from noetl.playbook.dialects.upstream_sets import own_tasks

Place = Literal["input", "rule", "router"]


class TemplatePlace(NamedTuple):
    """Where a template stands: its step, the task, and the part of either."""

    step: Mapping | None
    task: Mapping | None
    place: Place
    before: tuple[Slot, ...] = ()
    """The tasks above it in the pipeline."""
    pipeline: tuple[Slot, ...] = ()
    """All tasks of that pipeline; for the rest of a step, those of the step."""


class Known:
    """The names of a document that are something else than results."""

    def __init__(self, draft: Draft) -> None:
        self.workload = set((draft.root.mapping("workload") or Mapping()).keys())
        self.written: set[str] = set()
        self.carried: dict[str, set[str]] = {}
        for rule in draft.rules():
            then = then_of(rule) or Mapping()
            for word in ("set_ctx", "set_iter"):
                self.written |= set((then.mapping(word) or Mapping()).keys())
        for arc in draft.arcs():
            target = self.carried.setdefault(arc.text("step") or "", set())
            target |= set((arc.mapping("args") or Mapping()).keys())

    def within(self, step: Mapping | None) -> set[str]:
        """Names that a template of a step finds without a scope."""
        return self.written | self.workload | self.local(step)

    def local(self, step: Mapping | None) -> set[str]:
        if step is None:
            return set()
        loop = step.mapping("loop") or Mapping()
        carried = self.carried.get(step.text("step") or "", set())
        return {loop.text("iterator") or "", *carried} - {""}


def spots(draft: Draft) -> Iterator[tuple[Slot, TemplatePlace]]:
    """Every template of the workflow and the workbook, with where it stands."""
    seen: set[int] = set()
    for step in draft.steps():
        for slot, spot in _in_pipeline(step, tuple(own_tasks(step))):
            seen.add(id(slot))
            yield slot, spot
        router = step.node("next")
        routing = {id(slot) for slot in templates_below(router)} if router is not None else set()
        for slot in templates_below(step):
            if id(slot) not in seen:
                seen.add(id(slot))
                place: Place = "router" if id(slot) in routing else "input"
                yield slot, TemplatePlace(step, None, place, (), tuple(own_tasks(step)))
    for task in draft.tasks():
        for slot, place in _of_task(task):
            if id(slot) not in seen:
                seen.add(id(slot))
                yield slot, TemplatePlace(None, task, place)


def _in_pipeline(step: Mapping, tasks: tuple[Slot, ...]) -> Iterator[tuple[Slot, TemplatePlace]]:
    """The templates of tasks, those of nested pipelines with their own tasks around them."""
    for number, label in enumerate(tasks):
        task = label.node
        assert isinstance(task, Mapping)
        inner = tuple(own_tasks(task))
        nested = list(_in_pipeline(step, inner))
        below = {id(slot) for slot, _ in nested}
        for slot, place in _of_task(task):
            if id(slot) not in below:
                yield slot, TemplatePlace(step, task, place, tasks[:number], tasks)
        yield from nested


def _of_task(task: Mapping) -> Iterator[tuple[Slot, Place]]:
    ruled = {id(slot) for rule in rules_of(task) for slot in templates_below(rule)}
    for slot in templates_below(task):
        yield slot, "rule" if id(slot) in ruled else "input"


def iterators_below(task: Mapping | None) -> set[str]:
    """Iterators of nested loops below a task."""
    if task is None:
        return set()
    return {slot.text or "" for slot in slots_below(task) if slot.key == "iterator"} - {""}
