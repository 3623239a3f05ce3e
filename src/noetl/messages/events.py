"""
Every event of the log, one frozen class each (EVT-2).

A class holds what is particular to it. The rest of the envelope (EVT-1) follows from the row it
stands in and from the tables here: `seq` and `event_id` from its place, `timestamp` from the
decision, `source`, `entity` and `status` from `NAMES`. On the wire an event is one flat JSON
object whose `name` says which class it is; readers see all but the envelope's fields as `data`.
"""

from typing import Any, Literal

import msgspec

End = Literal["completed", "failed", "cancelled"]
"""How an execution ends."""


class Event(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="name", gc=False
):
    """Anything that can stand in the log."""


class StepEvent(Event, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An event of one step run."""

    step: str
    step_run_id: str


class TaskEvent(StepEvent, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An event of one task run; its id tells in which iteration it stands (EVT-0)."""

    task_run_id: str
    task: str
    part: int = msgspec.field(default=0, name="leg")
    parent_id: str | None = None


# ── the request (SRV-2) ──────────────────────────────────────────────────────────────────────


class ExecutionRequested(Event, frozen=True, kw_only=True, tag="playbook.execution.requested"):
    path: str
    version: str | None = None
    digest: str
    folder: str | None = None
    """The folder of the playbook's file: where its relative paths begin."""
    store: str = "files"
    """Where large bodies of this execution are kept (RES-1)."""
    payload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    trace_id: str | None = None
    parent_execution_id: str | None = None
    parent_id: str | None = None
    rules: int = 1
    """By which rules its decisions are made: a log is verified by those it was written by."""


class RequestEvaluated(Event, frozen=True, kw_only=True, tag="playbook.request.evaluated"):
    workload: dict[str, Any] = {}
    error: dict[str, Any] | None = None


class WorkflowStarted(Event, frozen=True, kw_only=True, tag="workflow.started"):
    step: str


# ── tokens ───────────────────────────────────────────────────────────────────────────────────


class TokenCreated(Event, frozen=True, kw_only=True, omit_defaults=True, tag="token.created"):
    token_id: str
    step: str
    args: dict[str, Any] = {}
    parent_step_run_id: str | None = None
    source: str | None = None
    """The step whose arc made it; None for the entry token."""
    rounds: dict[str, int] = {}
    """How often its ancestry has passed each join (NEXT-7)."""


class TokenEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    token_id: str
    step: str


class TokenParked(TokenEvent, frozen=True, kw_only=True, tag="token.parked"):
    reason: Literal["refused", "join", "paused"] = "refused"


class TokenDropped(TokenEvent, frozen=True, kw_only=True, tag="token.dropped"):
    reason: str
    error: dict[str, Any] | None = None
    """Set where dropping it makes the execution fail (a limit)."""


class TokenAbsorbed(TokenEvent, frozen=True, kw_only=True, tag="token.absorbed"):
    round: str = ""


class AdmitEvaluated(TokenEvent, frozen=True, kw_only=True, tag="policy.admit.evaluated"):
    allow: bool
    rule: int | None = None
    """The number of the rule that decided; None when none matched (ADM-1: allow)."""
    error: dict[str, Any] | None = None


# ── step runs ────────────────────────────────────────────────────────────────────────────────


class StepScheduled(StepEvent, frozen=True, kw_only=True, tag="step.scheduled"):
    tokens: list[str]
    args: dict[str, Any] | None = None
    """Merged `args` of a join (NEXT-7); None: those of the one token."""
    rounds: dict[str, int] | None = None


class TokenEnqueued(StepEvent, frozen=True, kw_only=True, tag="token.enqueued"):
    """One part of a run is offered to the workers: all of it, or a range of its iterations."""

    pool: str = "default"
    part: int = msgspec.field(default=0, name="leg")
    first: int = 0
    last: int = 0
    """The iterations `first` to `last - 1`; both 0 for a run without a distributed loop."""


class TokenClaimed(StepEvent, frozen=True, kw_only=True, tag="token.claimed"):
    worker: str
    epoch: int
    part: int = msgspec.field(default=0, name="leg")


class StepStarted(StepEvent, frozen=True, kw_only=True, tag="step.started"):
    pass


class StepDone(StepEvent, frozen=True, kw_only=True, tag="step.done"):
    result: Any = None


class StepFailed(StepEvent, frozen=True, kw_only=True, tag="step.failed"):
    error: dict[str, Any]
    result: Any = None
    loop: dict[str, Any] | None = None


class LeaseExpired(StepEvent, frozen=True, kw_only=True, tag="lease.expired"):
    epoch: int
    part: int = msgspec.field(default=0, name="leg")
    worker: str | None = None
    returned: bool = False
    """The worker gave it back; it does not count as lost."""
    uncounted: bool = False
    """Nobody's loss: the server was away, or the execution changed hands."""


# ── task runs ────────────────────────────────────────────────────────────────────────────────


class TaskStarted(TaskEvent, frozen=True, kw_only=True, tag="task.started"):
    kind: str
    attempt: int = 1


class TaskDone(TaskEvent, frozen=True, kw_only=True, tag="task.done"):
    """TASK-9: everything that resuming needs, so that nothing is evaluated again."""

    attempt: int = 1
    outcome: dict[str, Any]
    rule: int | None = None
    do: Literal["continue", "retry", "jump", "break", "fail"] = "continue"
    to: str | None = None
    delay: float = 0.0
    set_iter: dict[str, Any] = {}
    set_ctx: dict[str, Any] = {}
    set_prev: Any = msgspec.UNSET
    error: dict[str, Any] | None = None
    """Why the pipeline fails, where that is not the outcome's own error (`retry_exhausted`)."""


class TaskSuspended(TaskEvent, frozen=True, kw_only=True, tag="task.suspended"):
    """TASK-8: the frame waits without a worker, until `due` (ms) or until `waits_for` happens."""

    reason: str
    due: int | None = None
    waits_for: dict[str, Any] = {}


class CtxPatched(Event, frozen=True, kw_only=True, tag="ctx.patched"):
    patch: dict[str, Any]
    step: str | None = None
    step_run_id: str | None = None
    task_run_id: str | None = None


# ── loops ────────────────────────────────────────────────────────────────────────────────────


class LoopStarted(StepEvent, frozen=True, kw_only=True, tag="loop.started"):
    total: int
    items: Any
    """The collection, or a reference to it (LOOP-1)."""
    mode: Literal["sequential", "parallel"]
    exec: Literal["local", "distributed"] = "local"
    part: int = msgspec.field(default=0, name="leg")
    parent_id: str | None = None


class IterationStarted(StepEvent, frozen=True, kw_only=True, tag="loop.iteration.started"):
    index: int
    iteration_id: str
    part: int = msgspec.field(default=0, name="leg")
    parent_id: str | None = None


class IterationDone(StepEvent, frozen=True, kw_only=True, tag="loop.iteration.done"):
    index: int
    iteration_id: str
    part: int = msgspec.field(default=0, name="leg")
    result: Any = None
    parent_id: str | None = None


class IterationFailed(StepEvent, frozen=True, kw_only=True, tag="loop.iteration.failed"):
    index: int
    iteration_id: str
    part: int = msgspec.field(default=0, name="leg")
    error: dict[str, Any]
    parent_id: str | None = None


class LoopDone(StepEvent, frozen=True, kw_only=True, tag="loop.done"):
    """The loop's own end; `parent_id` names the task run of a nested one, which never routes."""

    total: int
    done: int
    failed: int = 0
    results: Any = []
    errors: Any = []
    part: int = msgspec.field(default=0, name="leg")
    parent_id: str | None = None


# ── routing and the end ──────────────────────────────────────────────────────────────────────


class NextEvaluated(StepEvent, frozen=True, kw_only=True, tag="next.evaluated"):
    on: str
    arcs: list[int] = []
    """The arcs that fire, by their number in the document."""
    error: dict[str, Any] | None = None
    """A guard or `args` that could not be evaluated; it names the arc and fails the execution."""


class NextFired(StepEvent, frozen=True, kw_only=True, tag="next.fired"):
    arc: int
    to: str
    token_id: str


class ExecutionPaused(Event, frozen=True, kw_only=True, tag="execution.paused"):
    reason: str = ""


class ExecutionResumed(Event, frozen=True, kw_only=True, tag="execution.resumed"):
    reason: str = ""


class ExecutionCancelled(Event, frozen=True, kw_only=True, tag="execution.cancelled"):
    """The order that nothing new starts and what runs stops: a person's, or a limit's."""

    by: Literal["cancel", "fail_fast", "timeout"] = "cancel"
    reason: str = ""
    error: dict[str, Any] | None = None


class WorkflowFinished(Event, frozen=True, kw_only=True, tag="workflow.finished"):
    status: End
    error: dict[str, Any] | None = None
    result: Any = None
    failures: int = 0


class PlaybookProcessed(Event, frozen=True, kw_only=True, tag="playbook.processed"):
    status: End


Boundary = StepDone | StepFailed | LoopDone
"""What ends a step run and makes its router decide (NEXT-2)."""

AnyEvent = (
    ExecutionRequested
    | RequestEvaluated
    | WorkflowStarted
    | TokenCreated
    | TokenParked
    | TokenDropped
    | TokenAbsorbed
    | AdmitEvaluated
    | StepScheduled
    | TokenEnqueued
    | TokenClaimed
    | StepStarted
    | StepDone
    | StepFailed
    | LeaseExpired
    | TaskStarted
    | TaskDone
    | TaskSuspended
    | CtxPatched
    | LoopStarted
    | IterationStarted
    | IterationDone
    | IterationFailed
    | LoopDone
    | NextEvaluated
    | NextFired
    | ExecutionPaused
    | ExecutionResumed
    | ExecutionCancelled
    | WorkflowFinished
    | PlaybookProcessed
)
