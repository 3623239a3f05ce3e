"""Where does each template of a document stand, and what stands around it? (DIA)"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from noetl.expression.syntax import is_template
from noetl.playbook.dialects.draft import Draft, own_tasks, targets_below, templates_below, then_of
from noetl.playbook.dialects.tree import Mapping, Scalar, TreeSlot

PlaceKind = Literal["workload", "admit", "loop", "input", "rule", "router", "end"]
"""`end`: a word of an older dialect beside `tool`, which no pass has moved."""


class TemplatePlace(NamedTuple):
    """Where a template stands: its step, the task, and the part of either."""

    step: Mapping | None
    task: Mapping | None
    kind: PlaceKind
    before: tuple[TreeSlot, ...] = ()
    """The tasks above it in the pipeline."""
    pipeline: tuple[TreeSlot, ...] = ()
    """All tasks of that pipeline; for the rest of a step, those of the step."""
    iterators: tuple[str, ...] = ()
    """The elements of the loops around it, the innermost last."""


def places(draft: Draft) -> Iterator[tuple[TreeSlot, TemplatePlace]]:
    """Every template of a document, with where it stands."""
    for key in ("workload", "keychain"):
        held = draft.root.slot(key)
        for slot in templates_in(held) if held is not None else ():
            yield slot, TemplatePlace(None, None, "workload")
    for step in draft.steps():
        yield from places_in(step)
    workbook = draft.root.mapping("workbook")
    lent = workbook.mapping("tasks") if workbook is not None else None
    for label in lent.slots if lent is not None else ():
        if isinstance(label.node, Mapping):
            yield from _in_task(None, label.node, (), (), ())


def places_in(step: Mapping) -> Iterator[tuple[TreeSlot, TemplatePlace]]:
    """The templates of one step."""
    tasks = tuple(own_tasks(step))
    loop = step.mapping("loop")
    iterator = loop.text("iterator") if loop is not None else None
    around = (iterator,) if iterator else ()
    kinds: dict[str, PlaceKind] = {"next": "router", "spec": "admit", "loop": "loop"}
    for held in step.slots:
        if held.key == "tool" and tasks:
            yield from _in_pipeline(step, tasks, around)
            continue
        kind: PlaceKind = "input" if held.key == "tool" else kinds.get(held.key or "", "end")
        inside = around if kind in ("input", "end") else ()
        for slot in templates_in(held):
            yield slot, TemplatePlace(step, None, kind, (), tasks, inside)


def _in_pipeline(
    step: Mapping | None, tasks: tuple[TreeSlot, ...], around: tuple[str, ...]
) -> Iterator[tuple[TreeSlot, TemplatePlace]]:
    for number, label in enumerate(tasks):
        assert isinstance(label.node, Mapping)
        yield from _in_task(step, label.node, tasks[:number], tasks, around)


def _in_task(
    step: Mapping | None,
    task: Mapping,
    before: tuple[TreeSlot, ...],
    pipeline: tuple[TreeSlot, ...],
    around: tuple[str, ...],
) -> Iterator[tuple[TreeSlot, TemplatePlace]]:
    """The templates of a task; those of a pipeline inside of it with the tasks around them."""
    inner = tuple(own_tasks(task))
    for held in task.slots:
        if held.key == "tool" and inner:
            iterator = task.text("iterator")
            yield from _in_pipeline(step, inner, (*around, iterator) if iterator else around)
        elif held.key == "spec" and isinstance(held.node, Mapping):
            for knob in held.node.slots:
                kind: PlaceKind = "rule" if knob.key in ("policy", "eval") else "input"
                for slot in templates_in(knob):
                    yield slot, TemplatePlace(step, task, kind, before, pipeline, around)
        else:
            for slot in templates_in(held):
                yield slot, TemplatePlace(step, task, "input", before, pipeline, around)


def templates_in(slot: TreeSlot) -> Iterator[TreeSlot]:
    """The slot itself if it holds a template, and the slots below it that do."""
    if isinstance(slot.node, Scalar):
        if slot.node.style != "*" and is_template(slot.text):
            yield slot
    else:
        yield from templates_below(slot.node)


class Known:
    """The names of a document that are something else than results."""

    def __init__(self, draft: Draft) -> None:
        self.workload = set((draft.root.mapping("workload") or Mapping()).keys())
        self.written: set[str] = set()
        self.carried: dict[str, set[str]] = {}
        self.called: set[str] = set()
        """Arguments that calls give to tasks of the workbook."""
        for rule in draft.rules():
            then = then_of(rule) or Mapping()
            for word in ("set_ctx", "set_iter"):
                self.written |= set((then.mapping(word) or Mapping()).keys())
        for step in draft.steps():
            for arc in targets_below(step):
                target = self.carried.setdefault(arc.text("step") or "", set())
                target |= set((arc.mapping("args") or Mapping()).keys())
        for task in draft.tasks():
            if task.text("kind") == "workbook":
                self.called |= set((task.mapping("args") or Mapping()).keys())

    def into(self, step: Mapping | None) -> set[str]:
        """What tokens carry into a step."""
        name = step.text("step") if step is not None else None
        return self.carried.get(name or "", _NONE)

    def defines(self, name: str, place: TemplatePlace) -> bool:
        """Whether a template finds the name without a scope."""
        return (
            name in self.written
            or name in self.workload
            or name in self.into(place.step)
            or name in place.iterators
        )


_NONE: set[str] = set()


def hides(known: Known, name: str, place: TemplatePlace) -> bool:
    """Whether something nearer than the result of a step has the name (case dialect)."""
    if place.step is None:
        return name in known.called
    bound = place.step.mapping("args")
    held = bound is not None and name in bound
    return held or name in known.into(place.step) or name in place.iterators
