"""Which events does a name mean? Globs, and older names with what they meant (EVT-2)."""

from collections.abc import Callable, Mapping
from typing import Any

from noetl.messages.globs import matches
from noetl.messages.names import ALIASES, EVENTS

Seen = Mapping[str, Any]
"""An event in its envelope."""
Wanted = Callable[[Seen], bool]


def wanted(glob: str | None) -> Wanted:
    """
    Whether a reader asked for an event.

    A glob that matches names of this log means those; only else it is one of older names.
    """
    if glob is None:
        return lambda _: True
    older = [name for name in ALIASES if matches(name, glob)]
    if not older or any(matches(name, glob) for name in EVENTS):
        return lambda event: matches(event["name"], glob)
    return lambda event: any(means(name, event) for name in older)


def means(older: str, event: Seen) -> bool:
    """Whether this is an event that an older name spoke of."""
    names, holds = NARROWER.get(older, ((ALIASES[older],), None))
    return event["name"] in names and (holds is None or holds(event))


def _again(event: Seen) -> bool:
    return bool(event["data"].get("attempt", 1) > 1)


def _ok(event: Seen) -> bool:
    return bool(event["data"]["outcome"].get("status") == "ok")


def _error(event: Seen) -> bool:
    return not _ok(event)


def _of_step(event: Seen) -> bool:
    """The end of a loop inside a task is not that of its step (LOOP-7)."""
    return event["name"] != "loop.done" or event["parent_id"] is None


STORING = {"postgres": "pg", "duckdb": "duckdb", "snowflake": "snowflake", "gcs": "gcs", "s3": "s3"}
"""Kinds of storage tasks, which is what a sink is (RES-3), and their blocks of the outcome."""


def _stores(event: Seen) -> bool:
    if event["name"] == "task.started":
        return event["data"]["kind"] in STORING
    return not event["data"]["outcome"].keys().isdisjoint(STORING.values())


ENDS = ("step.done", "step.failed", "loop.done")
ITERATION_ENDS = ("loop.iteration.done", "loop.iteration.failed")

NARROWER: dict[str, tuple[tuple[str, ...], Wanted | None]] = {
    "call.done": (("task.done",), _ok),
    "call.error": (("task.done",), _error),
    "step.exit": (ENDS, _of_step),
    "step.finished": (ENDS, _of_step),
    "retry.started": (("task.started",), _again),
    "retry.processed": (("task.done",), _again),
    "sink.started": (("task.started",), _stores),
    "sink.processed": (("task.done",), _stores),
    "loop.iteration.finished": (ITERATION_ENDS, None),
    "LoopIterationCompleted": (ITERATION_ENDS, None),
}
"""Older names that meant something else than all events of one name."""
