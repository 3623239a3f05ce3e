"""Do `workbook` tasks name tasks that exist, and come to an end? (TOOL-2)"""

from collections.abc import Iterator

from noetl.expression.syntax import is_template
from noetl.playbook.check_tasks import tasks_of
from noetl.playbook.model import Playbook, Task
from noetl.playbook.reader import Reader
from noetl.playbook.suggest import did_you_mean


def _called(task: Task) -> Iterator[str]:
    """The names of workbook tasks that a task calls, in its inner pipeline too."""
    name = task.inputs.get("name")
    if task.kind == "workbook" and isinstance(name, str) and not is_template(name):
        yield name
    for inner in task.inner.tasks if task.inner is not None else ():
        yield from _called(inner)


def check_workbook_names(reader: Reader, playbook: Playbook) -> None:
    """Each name is one of the workbook's."""
    for task in tasks_of(playbook):
        for name in _called(task) if task.inner is None else ():
            if name not in playbook.workbook:
                known = ", ".join(playbook.workbook) or "none"
                reader.report(
                    "unknown-workbook-task",
                    reader.input_at(task.place.path, "name"),
                    f"the workbook has no task '{name}'",
                    did_you_mean(name, playbook.workbook, f"tasks of the workbook: {known}"),
                )


def check_workbook_cycles(reader: Reader, playbook: Playbook) -> None:
    """No task of the workbook comes back to itself; each circle is told once."""
    calls = {name: tuple(_called(task)) for name, task in playbook.workbook.items()}
    told: set[str] = set()
    for name in calls:
        circle = _circle(calls, name)
        if circle and not told.intersection(circle):
            told.update(circle)
            reader.report(
                "workbook-cycle",
                reader.places[playbook.workbook[name].place.path],
                f"workbook tasks call each other in a circle: {' → '.join([*circle, name])}",
                "break the circle; a step can repeat by an arc that points backwards",
            )


def _circle(calls: dict[str, tuple[str, ...]], start: str) -> list[str]:
    """A way from `start` back to `start`, or nothing."""
    ways = [[start]]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        for name in calls.get(way[-1], ()):
            if name == start:
                return way
            if name not in seen:
                seen.add(name)
                ways.append([*way, name])
    return []
