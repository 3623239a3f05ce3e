"""Which names does a template see, and which steps, labels and tasks does a playbook have?"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from noetl.expression.filters import FILTERS
from noetl.expression.lookup import SEARCHED
from noetl.kinds.kind import Kind
from noetl.playbook.check_tasks import pipelines_of
from noetl.playbook.editing.cursor import MARK, Cursor
from noetl.playbook.editing.language import AtCursor, Suggestion
from noetl.playbook.finding import Place
from noetl.playbook.model import Playbook, Task
from noetl.playbook.visible import Seen, spots

NAMESPACES: Mapping[str, str] = {
    "workload": "Inputs: the `workload` of the playbook with the request over it (DOC-3).",
    "ctx": "State of the whole execution, written by `set_ctx` (SCOPE-4).",
    "iter": "State of this iteration, and the element under the iterator's name (SCOPE-2).",
    "args": "What the arc that led here carries (NEXT-4).",
    "execution_id": "The id of this execution.",
    "_prev": "The result of the task before this one (TASK-5).",
    "_task": "The label of this task.",
    "_attempt": "The number of this attempt, from 1.",
    "outcome": "How the task ended: `status`, `result`, `error`, and the kind's own part (OUT-2).",
    "event": "How the step ended: `name`, `result`, `error`, `loop` (NEXT-2).",
}
_OPEN = re.compile(r"\{\{(?!.*\}\})|\{%(?!.*%\})", re.DOTALL)
_PATH = re.compile(r"([A-Za-z_][\w.]*)?$")
_FILTER = re.compile(r"\|\s*(\w*)$")


def inside_template(before: str) -> str | None:
    """The expression before the cursor; None outside of `{{ }}` and `{% %}`."""
    opened = _OPEN.search(before)
    return None if opened is None else before[opened.end() :]


def template_names(
    cursor: Cursor, playbook: Playbook, kinds: Mapping[str, Kind]
) -> list[Suggestion]:
    """What can follow in the template at the cursor: filters after `|`, else names."""
    expression = inside_template(cursor.before) or ""
    if _FILTER.search(expression):
        return [Suggestion(name, "filter") for name in sorted(FILTERS)]
    seen = seen_at(cursor.path, playbook, kinds)
    path = _PATH.search(expression)
    *parents, _ = (path[0] if path is not None else "").split(".")
    if not parents:
        return [*_roots(seen), *_unqualified(seen)]
    return [Suggestion(name, f"key of {'.'.join(parents)}") for name in _keys(seen, parents)]


def seen_at(path: str, playbook: Playbook, kinds: Mapping[str, Kind]) -> Seen:
    """What the nearest rendered value around a path sees; every namespace where none is around."""
    around = [spot for spot in spots(playbook, kinds, {}) if _holds(spot.path, path)]
    if not around:
        return dict.fromkeys(NAMESPACES)
    return max(around, key=lambda spot: len(spot.path)).seen


def _holds(outer: str, path: str) -> bool:
    return path == outer or (path.startswith(outer) and path[len(outer)] in ".[")


def _roots(seen: Seen) -> Iterator[Suggestion]:
    for name in seen:
        yield Suggestion(name, NAMESPACES.get(name, ""), f"**{name}**: {NAMESPACES.get(name, '')}")


def _unqualified(seen: Seen) -> Iterator[Suggestion]:
    """A name without its namespace is looked for in these (TPL-2)."""
    for space in SEARCHED:
        yield from (
            Suggestion(f"{space}.{name}", f"key of {space}") for name in _keys(seen, [space])
        )


def _keys(seen: Seen, parents: list[str]) -> list[str]:
    shape: Any = seen
    for name in parents:
        shape = shape.get(name) if isinstance(shape, Mapping) else None
    return [name for name in shape or () if MARK not in name]


# ── what a value names ───────────────────────────────────────────────────────────────────────


def targets(setting: AtCursor, cursor: Cursor, playbook: Playbook) -> dict[str, tuple[Place, str]]:
    """What the value at the cursor may name: where each stands, and what it is."""
    match setting.names:
        case "step":
            return {
                step.name: (step.place, step.desc or "step")
                for step in playbook.steps
                if MARK not in step.name
            }
        case "label":
            return {task.label: (task.place, task.kind) for task in _pipeline(cursor, playbook)}
        case "workbook":
            return {name: (task.place, task.kind) for name, task in playbook.workbook.items()}
        case "credential":
            return {one.name: (one.place, one.kind) for one in playbook.keychain}
    return {}


def _pipeline(cursor: Cursor, playbook: Playbook) -> tuple[Task, ...]:
    """The tasks among which the cursor is: the innermost pipeline around it."""
    around = [
        tasks
        for tasks in pipelines_of(playbook)
        if any(_holds(task.place.path, cursor.path) for task in tasks)
    ]
    return max(around, key=lambda tasks: len(tasks[0].place.path), default=())
