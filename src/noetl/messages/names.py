"""The table of events: what each is about, who may tell it, and its older names (EVT-2)."""

from typing import Literal, NamedTuple, get_args

from noetl.messages.events import AnyEvent, Event, StepEvent


class About(NamedTuple):
    """The part of an envelope that follows from an event's name (EVT-1)."""

    source: str
    entity: str
    status: str
    id_field: str
    """The field that becomes `entity_id`; empty: the execution itself."""


class Row(NamedTuple):
    """One event of the table."""

    source: str
    entity: str
    status: str
    id_field: str
    by: Literal["server", "worker", "either"]
    """Who may tell it: the server decides it, a worker reports it, or either."""


EVENTS: dict[str, Row] = {
    "playbook.execution.requested": Row("server", "playbook", "in_progress", "", "server"),
    "playbook.request.evaluated": Row("server", "playbook", "in_progress", "", "server"),
    "workflow.started": Row("server", "workflow", "in_progress", "", "server"),
    "token.created": Row("server", "step", "in_progress", "token_id", "server"),
    "token.enqueued": Row("server", "step", "in_progress", "step_run_id", "server"),
    "token.parked": Row("server", "step", "paused", "token_id", "server"),
    "token.dropped": Row("server", "step", "skipped", "token_id", "server"),
    "token.absorbed": Row("server", "step", "skipped", "token_id", "server"),
    "policy.admit.evaluated": Row("server", "step", "success", "token_id", "server"),
    "step.scheduled": Row("server", "step", "in_progress", "step_run_id", "server"),
    "token.claimed": Row("server", "step", "in_progress", "step_run_id", "server"),
    "step.started": Row("worker", "step", "in_progress", "step_run_id", "worker"),
    "task.started": Row("worker", "task", "in_progress", "task_run_id", "worker"),
    "task.done": Row("worker", "task", "success", "task_run_id", "worker"),
    "task.suspended": Row("worker", "task", "paused", "task_run_id", "worker"),
    "ctx.patched": Row("server", "task", "success", "task_run_id", "server"),
    "loop.started": Row("server", "loop", "in_progress", "step_run_id", "either"),
    "loop.iteration.started": Row("worker", "loop", "in_progress", "iteration_id", "worker"),
    "loop.iteration.done": Row("worker", "loop", "success", "iteration_id", "worker"),
    "loop.iteration.failed": Row("worker", "loop", "error", "iteration_id", "worker"),
    "loop.done": Row("worker", "loop", "success", "step_run_id", "either"),
    "step.done": Row("worker", "step", "success", "step_run_id", "either"),
    "step.failed": Row("worker", "step", "error", "step_run_id", "either"),
    "next.evaluated": Row("server", "next", "success", "step_run_id", "server"),
    "next.fired": Row("server", "next", "success", "token_id", "server"),
    "lease.expired": Row("server", "step", "error", "step_run_id", "server"),
    "execution.paused": Row("server", "workflow", "paused", "", "server"),
    "execution.resumed": Row("server", "workflow", "in_progress", "", "server"),
    "execution.cancelled": Row("server", "workflow", "in_progress", "", "server"),
    "workflow.finished": Row("server", "workflow", "success", "", "server"),
    "playbook.processed": Row("server", "playbook", "success", "", "server"),
}
"""One row for each event. Where one can end either way (`task.done`) its fields settle `status`."""

CLASSES: dict[str, type[Event]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(AnyEvent)
}
if CLASSES.keys() != EVENTS.keys():
    raise ImportError(f"events without a row, or rows without: {CLASSES.keys() ^ EVENTS.keys()}")

NAMES = {name: About(*row[:4]) for name, row in EVENTS.items()}

REPORTED = tuple(
    kind
    for name, kind in CLASSES.items()
    if EVENTS[name].by != "server" and issubclass(kind, StepEvent)
)
"""The events that are a worker's to tell; every other one is the server's own."""

ALIASES: dict[str, str] = {
    # S3 §10.2
    "PlaybookExecutionRequested": "playbook.execution.requested",
    "PlaybookRequestEvaluated": "playbook.request.evaluated",
    "WorkflowStarted": "workflow.started",
    "TokenEnqueued": "token.enqueued",
    "TokenClaimed": "token.claimed",
    "StepScheduled": "step.scheduled",
    "StepStarted": "step.started",
    "NextEvaluated": "next.evaluated",
    "WorkflowFinished": "workflow.finished",
    "PlaybookProcessed": "playbook.processed",
    "TaskStarted": "task.started",
    "TaskProcessed": "task.done",
    "StepDone": "step.done",
    "StepFailed": "step.failed",
    "LoopStarted": "loop.started",
    "LoopIterationStarted": "loop.iteration.started",
    "LoopIterationCompleted": "loop.iteration.done",
    "LoopDone": "loop.done",
    # S0 §9.2, S1 §1.2
    "next.selected": "next.evaluated",
    "next.enqueued": "next.fired",
    "step.run.enqueued": "token.enqueued",
    "step.run.claimed": "token.claimed",
    # S2 §12.2
    "playbook.started": "workflow.started",
    "step.finished": "step.done",
    "step.exit": "step.done",
    "call.done": "step.done",
    "call.error": "step.failed",
    "tool.started": "task.started",
    "tool.processed": "task.done",
    "loop.iteration.finished": "loop.iteration.done",
    "loop.finished": "loop.done",
    "case.started": "next.evaluated",
    "case.evaluated": "next.evaluated",
    "retry.started": "task.started",
    "retry.processed": "task.done",
    "sink.started": "task.started",
    "sink.processed": "task.done",
    # S4 §11.1
    "playbook.execution_requested": "playbook.execution.requested",
    "task.processed": "task.done",
}
"""Every other name in the five source documents → the one of this log."""


def canonical(name: str) -> str:
    """The name that this log uses for an event, whatever document it was taken from."""
    return ALIASES.get(name, name)
