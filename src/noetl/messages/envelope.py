"""An event as readers see it: the envelope around what is particular to it (EVT-1)."""

from datetime import UTC, datetime
from typing import Any

from noetl.messages.names import EVENTS, NAMES, About

TAKEN = frozenset({"name", "step", "step_run_id", "task_run_id", "trace_id", "parent_id"})
"""
Fields that move from the event into the envelope as they are.

`source` and `status` of an event stay in `data` where they say something else than the envelope's.
"""

SHOWN_AS = {"leg": "part"}
"""Key of the log → what readers see: the log keeps the keys that releases wrote (decision 0085)."""
KEPT_AS = {shown: kept for kept, shown in SHOWN_AS.items()}

TOLD_BY_EITHER = frozenset(
    name for name, row in EVENTS.items() if row.by == "either" and name != "loop.started"
)
"""Events whose `source` is the envelope's: the server told it in the place of a worker."""

UNKNOWN = About("server", "workflow", "in_progress", "")


def envelope(
    event: dict[str, Any], *, execution_id: str, seq: int, at: int, trace_id: str | None
) -> dict[str, Any]:
    """The event at `seq` of an execution; `at` in ms. The log's view `event` says the same."""
    about = NAMES.get(event["name"], UNKNOWN)
    entity_id = event.get(about.id_field)
    return {
        "event_id": f"{execution_id}.{seq}",
        "seq": seq,
        "execution_id": execution_id,
        "timestamp": timestamp(at),
        "source": source_of(event, about.source),
        "name": event["name"],
        "entity": about.entity,
        "entity_id": execution_id if entity_id is None else entity_id,
        "status": status_of(event, about.status),
        "step": event.get("step"),
        "step_run_id": event.get("step_run_id"),
        "task_run_id": event.get("task_run_id"),
        "trace_id": execution_id if trace_id is None else trace_id,
        "parent_id": parent_of(event),
        "data": data_of(event),
    }


LAST_MOMENT = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z, in milliseconds since 1970."""


def timestamp(at: int) -> str:
    """
    Milliseconds since 1970 as RFC 3339, in UTC. Beyond the calendar it is its last moment: one
    impossible time must not spoil a list of many (promise 7).
    """
    seconds, millis = divmod(min(max(at, 0), LAST_MOMENT), 1000)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{millis:03d}Z"


def source_of(event: dict[str, Any], usual: str) -> str:
    """Who wrote it (EVT-1): some events are a worker's to tell, or the server's in its place."""
    if event["name"] == "loop.started":  # a step's own loop is begun by the server (LOOP-2)
        return usual if event.get("parent_id") is None else "worker"
    return str(event.get("source", usual)) if event["name"] in TOLD_BY_EITHER else usual


def status_of(event: dict[str, Any], usual: str) -> str:
    """Where an event can end either way, its fields settle the status."""
    if event.get("error") is not None:
        return "error"
    match event:
        case {"name": "task.done", "outcome": {"status": "error"}}:
            return "error"
        case {"name": "task.done", "do": "fail"}:
            return "error"
        case {
            "name": "workflow.finished" | "playbook.processed",
            "status": "failed" | "cancelled",
        }:
            return "error"
        case {"name": "policy.admit.evaluated", "allow": False}:
            return "skipped"
        case {"name": "lease.expired", "returned": True}:
            return "in_progress"
        case {"name": "lease.expired", "uncounted": True}:
            return "in_progress"
    return usual


def parent_of(event: dict[str, Any]) -> str | None:
    """
    What the entity is a part of: a task of its iteration or step run, an iteration of its step
    run or task, a token of the step run whose arc made it, a child of its parent's task.
    """
    if event.get("parent_id") is not None:
        return str(event["parent_id"])
    task = event.get("task_run_id")
    if task is not None:  # EVT-0: `4.1` is a task of run `4.0`, `4.1.2` one of iteration `4.1`
        above = task.rpartition(".")[0]
        return above if "." in above else event.get("step_run_id")
    return event.get("step_run_id" if "iteration_id" in event else "parent_step_run_id")


def data_of(event: dict[str, Any]) -> dict[str, Any]:
    """The rest of the event; what the log leaves out because it is usual is filled in."""
    name = event["name"]
    data = {**USUAL.get(name, {})}
    data.update((SHOWN_AS.get(key, key), value) for key, value in event.items() if key not in TAKEN)
    if name in TOLD_BY_EITHER:
        data.pop("source", None)
    return data


def fields_of(data: dict[str, Any]) -> dict[str, Any]:
    """`data` of an event as the log has it. What servers of earlier releases say stays as it is."""
    return {KEPT_AS.get(key, key): value for key, value in data.items()}


USUAL: dict[str, dict[str, Any]] = {
    "task.started": {"attempt": 1},
    "task.done": {"attempt": 1, "do": "continue"},
}
"""What readers need of every event of that name, and what it is where the log does not say."""
