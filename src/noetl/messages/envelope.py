"""An event as readers see it: the envelope around what is particular to it (EVT-1)."""

from datetime import UTC, datetime
from typing import Any

from noetl.messages.names import NAMES, About

TAKEN = frozenset({"name", "step", "step_run_id", "task_run_id", "trace_id", "parent_id"})
"""
Fields that move from the event into the envelope as they are.

`source` and `status` of an event stay in `data`: they say something else than the envelope's.
"""

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
        "source": about.source,
        "name": event["name"],
        "entity": about.entity,
        "entity_id": execution_id if entity_id is None else entity_id,
        "status": status_of(event, about.status),
        "step": event.get("step"),
        "step_run_id": event.get("step_run_id"),
        "task_run_id": event.get("task_run_id"),
        "trace_id": execution_id if trace_id is None else trace_id,
        "parent_id": event.get("parent_id"),
        "data": {name: value for name, value in event.items() if name not in TAKEN},
    }


def timestamp(at: int) -> str:
    """Milliseconds since 1970 as RFC 3339, in UTC."""
    seconds, millis = divmod(at, 1000)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{millis:03d}Z"


def status_of(event: dict[str, Any], usual: str) -> str:
    """Where an event can end either way, its fields settle the status."""
    match event:
        case {"name": "task.done", "outcome": {"status": "error"}}:
            return "error"
        case {
            "name": "workflow.finished" | "playbook.processed",
            "status": "failed" | "cancelled",
        }:
            return "error"
        case {"name": "policy.admit.evaluated", "allow": False}:
            return "skipped"
    return usual
