"""
The tables of events: what each is about, who may tell it, what its fields hold, its older names.

An event without a row, or a field that no table knows, is an ImportError: who adds one says here
whether it can be large and whether it can hold a secret (EVT-2, EVT-4, KEY-3).
"""

from typing import Any, Literal, get_args, get_origin

import msgspec

from noetl.messages.events import AnyEvent, Event, ExecutionRestored, StepEvent, StepRestored


class About(msgspec.Struct, frozen=True):
    """The part of an envelope that follows from an event's name (EVT-1)."""

    source: str
    entity: str
    status: str
    id_field: str
    """The field that becomes `entity_id`; empty: the execution itself."""


class Row(msgspec.Struct, frozen=True):
    """One event of the table."""

    source: str
    entity: str
    status: str
    id_field: str
    by: Literal["server", "worker", "either"]
    """Who may tell it: the server decides it, a worker reports it, or either."""
    shown: Literal["lists", ""]
    """Whether a list of executions reads differently after it."""


EVENTS: dict[str, Row] = {
    "playbook.execution.requested": Row("server", "playbook", "in_progress", "", "server", "lists"),
    "playbook.request.evaluated": Row("server", "playbook", "in_progress", "", "server", ""),
    "execution.queued": Row("server", "workflow", "paused", "", "server", "lists"),
    "execution.admitted": Row("server", "workflow", "in_progress", "", "server", "lists"),
    "workflow.started": Row("server", "workflow", "in_progress", "", "server", ""),
    "execution.restored": Row("server", "workflow", "in_progress", "", "server", ""),
    "token.created": Row("server", "step", "in_progress", "token_id", "server", ""),
    "token.enqueued": Row("server", "step", "in_progress", "step_run_id", "server", ""),
    "token.parked": Row("server", "step", "paused", "token_id", "server", ""),
    "token.dropped": Row("server", "step", "skipped", "token_id", "server", ""),
    "token.absorbed": Row("server", "step", "skipped", "token_id", "server", ""),
    "policy.admit.evaluated": Row("server", "step", "success", "token_id", "server", ""),
    "step.scheduled": Row("server", "step", "in_progress", "step_run_id", "server", ""),
    "step.restored": Row("server", "step", "in_progress", "step_run_id", "server", ""),
    "step.parked": Row("server", "step", "paused", "step_run_id", "server", ""),
    "token.claimed": Row("server", "step", "in_progress", "step_run_id", "server", ""),
    "step.started": Row("worker", "step", "in_progress", "step_run_id", "worker", ""),
    "task.started": Row("worker", "task", "in_progress", "task_run_id", "worker", ""),
    "task.cached": Row("worker", "task", "success", "task_run_id", "worker", ""),
    "task.done": Row("worker", "task", "success", "task_run_id", "worker", ""),
    "task.suspended": Row("worker", "task", "paused", "task_run_id", "worker", ""),
    "wait.started": Row("worker", "task", "paused", "task_run_id", "worker", ""),
    "wait.done": Row("server", "task", "success", "task_run_id", "server", ""),
    "wait.withdrawn": Row("server", "task", "skipped", "task_run_id", "server", ""),
    "signal.received": Row("server", "workflow", "success", "", "server", ""),
    "ctx.patched": Row("server", "task", "success", "task_run_id", "server", ""),
    "loop.started": Row("server", "loop", "in_progress", "step_run_id", "either", ""),
    "loop.iteration.started": Row("worker", "loop", "in_progress", "iteration_id", "worker", ""),
    "loop.iteration.done": Row("worker", "loop", "success", "iteration_id", "worker", ""),
    "loop.iteration.failed": Row("worker", "loop", "error", "iteration_id", "worker", ""),
    "loop.done": Row("worker", "loop", "success", "step_run_id", "either", ""),
    "step.done": Row("worker", "step", "success", "step_run_id", "either", ""),
    "step.failed": Row("worker", "step", "error", "step_run_id", "either", ""),
    "next.evaluated": Row("server", "next", "success", "step_run_id", "server", ""),
    "next.fired": Row("server", "next", "success", "token_id", "server", ""),
    "lease.expired": Row("server", "step", "error", "step_run_id", "server", ""),
    "execution.paused": Row("server", "workflow", "paused", "", "server", "lists"),
    "execution.resumed": Row("server", "workflow", "in_progress", "", "server", "lists"),
    "execution.cancelled": Row("server", "workflow", "in_progress", "", "server", "lists"),
    "workflow.finished": Row("server", "workflow", "success", "", "server", "lists"),
    "playbook.processed": Row("server", "playbook", "success", "", "server", ""),
}
"""One row for each event. Where one can end either way (`task.done`) its fields settle `status`."""

CLASSES: dict[str, type[Event]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(AnyEvent)
}
if CLASSES.keys() != EVENTS.keys():
    raise ImportError(f"events without a row, or rows without: {CLASSES.keys() ^ EVENTS.keys()}")

NAMES = {
    name: About(row.source, row.entity, row.status, row.id_field) for name, row in EVENTS.items()
}

REPORTED = tuple(
    kind
    for name, kind in CLASSES.items()
    if EVENTS[name].by != "server" and issubclass(kind, StepEvent)
)
"""The events that are a worker's to tell; every other one is the server's own."""

SHOWN = frozenset(kind for name, kind in CLASSES.items() if EVENTS[name].shown)


class Holds(msgspec.Struct, frozen=True):
    """What a field of an event holds, wherever an event has a field of that name."""

    moves: Literal["whole", "each", "error", "stays"]
    """How it leaves the log where it is too large: whole, key by key, shortened, or never."""
    secret: Literal["data", "words", "outcome", "shown"]
    """
    Data is sealed where it holds a secret, for pipelines go on with it; words are masked, but for
    those of ours that policies ask for; what is only shown is masked throughout.
    """


FIELDS: dict[str, Holds] = {
    "payload": Holds("each", "data"),
    "ctx": Holds("each", "data"),
    "workload": Holds("each", "data"),
    "args": Holds("each", "data"),
    "outcome": Holds("each", "outcome"),
    "set_iter": Holds("each", "data"),
    "set_ctx": Holds("each", "data"),
    "set_prev": Holds("whole", "data"),
    "patch": Holds("each", "data"),
    "items": Holds("whole", "data"),
    "results": Holds("whole", "data"),
    "errors": Holds("whole", "words"),
    "result": Holds("whole", "data"),
    "error": Holds("error", "words"),
    "loop": Holds("each", "data"),
    "waits_for": Holds("each", "data"),
    "inputs": Holds("each", "shown"),
    "content": Holds("whole", "data"),
    "awaits": Holds("stays", "words"),
    "about": Holds("stays", "words"),
    "reason": Holds("stays", "words"),
    "leaves": Holds("each", "data"),
    "cache": Holds("stays", "words"),
    "kept": Holds("whole", "data"),
    "run": Holds("whole", "data"),
}
"""
The fields that hold what users or the world wrote. Of two values of one size the one that stands
first here moves first: another order is another decision (`RULES` in `messages.requests`).
"""

PLAIN = frozenset(
    {
        *("digest", "folder", "iteration_id", "key", "kind", "label", "labels", "lent", "limit"),
        "from_execution_id",
        *("on", "parent_execution_id", "sender", "signal", "signal_id"),
        *("chosen", "origin_execution_id", "origin_run_id"),
        *("parent_id", "parent_step_run_id", "path", "pool", "round", "rounds", "source"),
        *("step", "step_run_id", "store", "task", "task_run_id", "to", "token_id"),
        *("tokens", "trace_id", "trigger", "version", "worker"),
    }
)
"""Fields that hold names and ids: short, and never a secret. Numbers and Literals need no row."""


def held_by(kind: type[Event]) -> dict[str, Holds]:
    """What the fields of an event hold; ImportError where nobody has said it of one."""
    for field in kind.__struct_fields__:
        if field not in FIELDS and field not in PLAIN and not is_plain(type_of(kind, field)):
            raise ImportError(f"{kind.__name__}.{field} belongs into FIELDS or PLAIN")
    return {field: holds for field, holds in FIELDS.items() if field in kind.__struct_fields__}


def type_of(kind: type[Event], field: str) -> Any:
    return next(
        base.__annotations__[field] for base in kind.__mro__ if field in base.__annotations__
    )


def is_plain(type_: Any) -> bool:
    """Whether values of this type are small and say nothing: numbers, and words of ours."""
    if get_origin(type_) is Literal or type_ in (int, float, bool, None, type(None)):
        return True
    return bool(get_args(type_)) and all(is_plain(below) for below in get_args(type_))


FOLDED: dict[type[Event], str] = {ExecutionRestored: "kept", StepRestored: "run"}
"""Fields that hold a state: whoever folds the log loads them first, where they lie outside."""

HELD = {kind: held_by(kind) for kind in CLASSES.values()}

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
