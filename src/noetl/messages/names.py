"""The names of events: what each one is about, and what the older documents call it (EVT-2)."""

from typing import NamedTuple


class About(NamedTuple):
    """The part of an envelope that follows from an event's name (EVT-1)."""

    source: str
    entity: str
    status: str
    id_field: str
    """The field that becomes `entity_id`; empty: the execution itself."""


NAMES: dict[str, About] = {
    "playbook.execution.requested": About("server", "playbook", "in_progress", ""),
    "playbook.request.evaluated": About("server", "playbook", "in_progress", ""),
    "workflow.started": About("server", "workflow", "in_progress", ""),
    "token.created": About("server", "step", "in_progress", "token_id"),
    "token.enqueued": About("server", "step", "in_progress", "step_run_id"),
    "token.parked": About("server", "step", "paused", "token_id"),
    "token.dropped": About("server", "step", "skipped", "token_id"),
    "token.absorbed": About("server", "step", "skipped", "token_id"),
    "policy.admit.evaluated": About("server", "step", "success", "token_id"),
    "step.scheduled": About("server", "step", "in_progress", "step_run_id"),
    "token.claimed": About("server", "step", "in_progress", "step_run_id"),
    "step.started": About("worker", "step", "in_progress", "step_run_id"),
    "task.started": About("worker", "task", "in_progress", "task_run_id"),
    "task.done": About("worker", "task", "success", "task_run_id"),
    "task.suspended": About("worker", "task", "paused", "task_run_id"),
    "ctx.patched": About("server", "task", "success", "task_run_id"),
    "loop.started": About("server", "loop", "in_progress", "step_run_id"),
    "loop.iteration.started": About("worker", "loop", "in_progress", "iteration_id"),
    "loop.iteration.done": About("worker", "loop", "success", "iteration_id"),
    "loop.iteration.failed": About("worker", "loop", "error", "iteration_id"),
    "loop.done": About("worker", "loop", "success", "step_run_id"),
    "step.done": About("worker", "step", "success", "step_run_id"),
    "step.failed": About("worker", "step", "error", "step_run_id"),
    "next.evaluated": About("server", "next", "success", "step_run_id"),
    "next.fired": About("server", "next", "success", "token_id"),
    "lease.expired": About("server", "step", "error", "step_run_id"),
    "execution.paused": About("server", "workflow", "paused", ""),
    "execution.resumed": About("server", "workflow", "in_progress", ""),
    "execution.cancelled": About("server", "workflow", "in_progress", ""),
    "workflow.finished": About("server", "workflow", "success", ""),
    "playbook.processed": About("server", "playbook", "success", ""),
}
"""Where an event can end either way (`task.done`) its fields settle `status`."""

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
