"""Do `workbook` tasks name tasks that exist, and come to an end? (TOOL-2)"""

from collections.abc import Iterator

from noetl.expression.syntax import is_template
from noetl.playbook.check_tasks import tasks_of
from noetl.playbook.model import Playbook, Task
from noetl.playbook.reader import Reader
from noetl.playbook.suggest import SHOWN_NAMES, some


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
                known = some(playbook.workbook) or "none"
                reader.report(
                    "unknown-workbook-task",
                    reader.input_at(task.place.path, "name"),
                    f"the workbook has no task '{name}'",
                    reader.suggest(name, playbook.workbook, f"tasks of the workbook: {known}"),
                )


def check_workbook_cycles(reader: Reader, playbook: Playbook) -> None:
    """No task of the workbook comes back to itself; each circle is told once."""
    calls = {name: tuple(_called(task)) for name, task in playbook.workbook.items()}
    told: set[str] = set()
    for circle in _circles(calls):
        if not told.isdisjoint(circle):
            continue
        told.update(circle)
        first = playbook.workbook[circle[0]]
        reader.report(
            "workbook-cycle",
            reader.places[first.place.path],
            f"workbook tasks call each other in a circle: {_way(circle)}",
            "break the circle; a step can repeat by an arc that points backwards",
        )


def _way(circle: list[str]) -> str:
    shown = circle if len(circle) <= SHOWN_NAMES else [*circle[:SHOWN_NAMES], "…"]
    return " → ".join([*shown, circle[0]])


def _circles(calls: dict[str, tuple[str, ...]]) -> Iterator[list[str]]:
    """The circles that a walk through all calls closes; every task is entered once."""
    done: set[str] = set()
    for start in calls:
        way: dict[str, Iterator[str]] = {start: iter(calls[start])} if start not in done else {}
        while way:
            here = next(reversed(way))
            name = next(way[here], None)
            if name is None:
                done.add(here)
                del way[here]
            elif name in way:
                names = list(way)
                yield names[names.index(name) :]
            elif name in calls and name not in done:
                way[name] = iter(calls[name])
