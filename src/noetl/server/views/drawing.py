"""What a picture of a playbook shows, whatever the format: boxes for steps, links for arcs."""

import re
from typing import Any, Literal

import msgspec

from noetl.playbook.model import Admission, Arc, Guard, Join, Loop, Playbook, Router, Step, Task

Sort = Literal["join", "admit", "loop", "fork"]

MOST_TASKS = 8
"""Longer pipelines are cut in the picture; the count of the rest is shown."""
FAILURE = re.compile(r"step\.failed|StepFailed|\bevent\.error\b")
NOT_FAILURE = re.compile(r"""(!=|\bnot in\b)\s*\[?\s*['"](step\.failed|StepFailed)""")


class Mark(msgspec.Struct, frozen=True):
    """One line of a box that says how the step behaves: `sort` is the word, `text` the detail."""

    sort: Sort
    text: str


class CardRow(msgspec.Struct, frozen=True):
    """One task inside a box. `depth` is 1 inside an `iterator` task, and so on."""

    label: str
    kind: str
    note: str = ""
    depth: int = 0


class Box(msgspec.Struct, frozen=True):
    """One step."""

    name: str
    desc: str
    marks: tuple[Mark, ...]
    rows: tuple[CardRow, ...]
    hidden: int = 0
    entry: bool = False
    final: bool = False


class Edge(msgspec.Struct, frozen=True):
    """One arc, by the indexes of its boxes. `label` is the guard without its braces."""

    source: int
    target: int
    label: str
    failure: bool = False


class Drawing(msgspec.Struct, frozen=True):
    """Everything that a renderer needs."""

    title: str
    boxes: tuple[Box, ...]
    links: tuple[Edge, ...]


def draw(playbook: Playbook) -> Drawing:
    """The boxes and links of a valid playbook, in document order."""
    index = {step.name: number for number, step in enumerate(playbook.steps)}
    entry = entry_of(playbook)
    final = playbook.executor.final_step
    links = [
        Edge(number, index[arc.step], label_of(step.router, place, arc), failing(arc.when))
        for number, step in enumerate(playbook.steps)
        if step.router
        for place, arc in enumerate(step.router.arcs)
    ]
    boxes = [
        box_of(step, entry=step.name == entry, final=step.name == final) for step in playbook.steps
    ]
    return Drawing(title=playbook.name, boxes=tuple(boxes), links=tuple(links))


def entry_of(playbook: Playbook) -> str:
    """DOC-5."""
    names = [step.name for step in playbook.steps]
    return playbook.executor.entry_step or ("start" if "start" in names else names[0])


def box_of(step: Step, *, entry: bool, final: bool) -> Box:
    rows = tuple(row for task in step.tasks for row in rows_of(task))
    return Box(
        name=step.name,
        desc=step.desc,
        marks=tuple(marks_of(step)),
        rows=rows[:MOST_TASKS],
        hidden=max(0, len(rows) - MOST_TASKS),
        entry=entry,
        final=final,
    )


def marks_of(step: Step) -> list[Mark]:
    """In the order in which a token meets them: join, admission, loop, router."""
    marks: list[Mark] = []
    if step.join:
        marks.append(Mark("join", join_text(step.join)))
    if step.admission:
        marks.append(Mark("admit", admission_text(step.admission)))
    if step.loop:
        marks.append(Mark("loop", loop_text(step.loop)))
    if step.router and step.router.mode == "inclusive" and len(step.router.arcs) > 1:
        marks.append(Mark("fork", "every arc that matches"))
    return marks


def join_text(join: Join) -> str:
    return f"{join.mode} of {', '.join(join.sources)}"


def admission_text(admission: Admission) -> str:
    rules = [
        f"{'allow' if rule.allow else 'refuse'} {condition_of(rule.when)}"
        for rule in admission.rules
    ]
    return "; ".join(rules) + ("; refused: drop" if admission.on_deny == "drop" else "")


def condition_of(when: Guard | None) -> str:
    return "otherwise" if when is None else f"if {bare(when)}"


def loop_text(loop: Loop) -> str:
    how = f"parallel, {loop.max_in_flight} in flight" if loop.mode == "parallel" else "sequential"
    what = f"{len(loop.items)} values" if isinstance(loop.items, list) else bare(loop.items)
    return f"{how}, {loop.iterator} in {what}"


def rows_of(task: Task, depth: int = 0) -> list[CardRow]:
    rows = [CardRow(task.label, task.kind, note_of(task), depth)]
    if task.inner:
        rows += [row for inner in task.inner.tasks for row in rows_of(inner, depth + 1)]
    return rows


def note_of(task: Task) -> str:
    """The directives of a policy that move the program counter, in few words."""
    notes = []
    for rule in task.spec.rules or ():
        if rule.then.do == "retry" and rule.then.attempts:
            notes.append(f"retry {rule.then.attempts}")
        elif rule.then.do == "jump":
            notes.append(f"jump {rule.then.to}")
        elif rule.then.do == "break":
            notes.append("break")
    return ", ".join(dict.fromkeys(notes))


def label_of(router: Router, place: int, arc: Arc) -> str:
    """The guard; numbered where the order of the arcs decides (NEXT-1)."""
    several = len(router.arcs) > 1
    ordered = several and router.mode == "exclusive"
    text = bare(arc.when) if arc.when is not None else ("otherwise" if ordered and place else "")
    return f"{place + 1}: {text or 'on success'}" if ordered else text


def bare(value: Any) -> str:
    """A guard or template on one line, without the braces of one whole expression."""
    if isinstance(value, bool):
        return "always" if value else "never"
    text = " ".join(str(value).split())
    whole = text.startswith("{{") and text.endswith("}}") and text.count("{{") == 1
    return text[2:-2].strip() if whole else text


def failing(when: Guard | None) -> bool:
    """Whether an arc is meant for failures: its guard asks for the failed event (NEXT-3)."""
    if not isinstance(when, str):
        return False
    return bool(FAILURE.search(when)) and not NOT_FAILURE.search(when)
