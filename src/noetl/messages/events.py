"""
Every event of the log, one frozen class each (EVT-2).

A class holds what is particular to it. The rest of the envelope (EVT-1) follows from the row it
stands in and from the tables here: `seq` and `event_id` from its place, `timestamp` from the
decision, `source`, `entity` and `status` from `NAMES`. On the wire an event is one flat JSON
object whose `name` says which class it is; readers see all but the envelope's fields as `data`.
The sentences here are those of docs/reference/events.md.
"""

from typing import Any, Literal

import msgspec

from noetl.messages.event import End as End
from noetl.messages.event import Event as Event
from noetl.messages.event import Source as Source
from noetl.messages.event import StepEvent as StepEvent
from noetl.messages.event import TaskEvent as TaskEvent
from noetl.messages.loop_events import IterationDone as IterationDone
from noetl.messages.loop_events import IterationEvent as IterationEvent
from noetl.messages.loop_events import IterationFailed as IterationFailed
from noetl.messages.loop_events import IterationStarted as IterationStarted
from noetl.messages.loop_events import LoopDone as LoopDone
from noetl.messages.loop_events import LoopStarted as LoopStarted
from noetl.messages.wait_events import SignalReceived as SignalReceived
from noetl.messages.wait_events import WaitDone as WaitDone
from noetl.messages.wait_events import WaitStarted as WaitStarted
from noetl.messages.wait_events import WaitWithdrawn as WaitWithdrawn

# ── the request (SRV-2) ──────────────────────────────────────────────────────────────────────


class ExecutionRequested(Event, frozen=True, kw_only=True, tag="playbook.execution.requested"):
    """An execution was requested: which playbook, with which inputs, in which trace."""

    path: str
    """The path of the playbook."""
    version: str | None = None
    """Its version in the catalog; of a file what its `metadata.version` says."""
    digest: str
    """The hash of its text, under which it is kept; of a refused request that of a stand-in."""
    folder: str | None = None
    """The folder of the playbook's file: where its relative paths begin."""
    store: str = "files"
    """Where large bodies of this execution are kept (RES-1)."""
    payload: dict[str, Any] = {}
    """What was given for `workload` (DOC-3)."""
    ctx: dict[str, Any] = {}
    """The initial `ctx` (SCOPE-4)."""
    trace_id: str | None = None
    """The trace of whoever asked; none: the execution is a trace of its own."""
    parent_execution_id: str | None = None
    """The execution whose task asked for it (TOOL-1)."""
    parent_id: str | None = None
    """The task run that asked for it, or the span that a `traceparent` named."""
    origin_execution_id: str | None = None
    """Of a restart: the execution whose state it takes over (RST-2)."""
    origin_seq: int | None = None
    """Of a restart: the last event of that execution."""
    chosen: list[str] = []
    """Of a restart: what is run again, as `step@run`, or `step@run:iterations`."""
    trigger: str | None = None
    """The key of the start, where a trigger asked for it: `trigger/<path>/<what for>` (START-2)."""
    depth: int = 0
    """How many executions in a row were started by the end of the one before (START-6)."""
    sender: str = ""
    """Who asked for it: the name of a token, or the user of the machine."""
    rules: int = 1
    """By which rules its decisions are made: a log is verified by those it was written by."""


class RequestEvaluated(Event, frozen=True, kw_only=True, tag="playbook.request.evaluated"):
    """The request was evaluated: its workload was built, or it was refused."""

    workload: dict[str, Any] = {}
    """The payload over the playbook's own, rendered (DOC-3)."""
    error: dict[str, Any] | None = None
    """Why the request is refused; the execution fails with it."""


class LimitEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    """An event of the limit on executions of a playbook (LIMIT-2)."""

    limit: str
    """What the limit is on: the path of the playbook."""
    key: str = ""
    """What is counted apart under it."""


class ExecutionQueued(LimitEvent, frozen=True, kw_only=True, tag="execution.queued"):
    """It waits for a place under its limit; nothing of it has begun."""

    place: int
    """In the queue, when it was asked."""
    priority: int = 0
    """The highest goes first."""


class ExecutionAdmitted(LimitEvent, frozen=True, kw_only=True, tag="execution.admitted"):
    """It has a place under its limit until it ends."""


class WorkflowStarted(Event, frozen=True, kw_only=True, tag="workflow.started"):
    """The first token is about to be made."""

    step: str
    """The entry step (DOC-5)."""


class ExecutionRestored(Event, frozen=True, kw_only=True, tag="execution.restored"):
    """What a restart takes over: the state of the old execution without what is run again."""

    ctx: dict[str, Any] = {}
    """`ctx` without what the forgotten runs wrote."""
    leaves: dict[str, Any] = {}
    """The results of steps at which it ended."""
    kept: Any
    """Counts of runs, meetings at joins, and failures that stay."""
    runs_kept: int = 0
    """How many `step.restored` follow."""
    tokens_kept: int = 0
    """How many `token.created` follow them: those that wait, or lead into what is run again."""


# ── tokens ───────────────────────────────────────────────────────────────────────────────────


class TokenCreated(Event, frozen=True, kw_only=True, omit_defaults=True, tag="token.created"):
    """A token was created at a step: permission and payload for one run of it."""

    token_id: str
    """The token."""
    step: str
    """The step that it stands at."""
    args: dict[str, Any] = {}
    """Its payload (NEXT-4)."""
    parent_step_run_id: str | None = None
    """The step run whose arc made it."""
    source: str | None = None
    """The step whose arc made it; None for the entry token."""
    rounds: dict[str, int] = {}
    """How often its ancestry has passed each join (NEXT-7)."""
    round: str = ""
    """Of one that a restart took over, at a join: the round that it belongs to."""


class TokenEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    """An event of one token."""

    token_id: str
    """The token."""
    step: str
    """The step that it stands at."""


class TokenParked(TokenEvent, frozen=True, kw_only=True, tag="token.parked"):
    """The token waits."""

    reason: Literal["refused", "join", "paused", "limit"] = "refused"
    """
    For what: admission refused it, others of its join are missing, the execution is paused, the
    limit of the step is reached.
    """
    key: str = ""
    """Of `limit`: what is counted apart under it."""
    priority: int = 0
    """Of `limit`: the highest goes first."""


class TokenDropped(TokenEvent, frozen=True, kw_only=True, tag="token.dropped"):
    """The token leads to no run."""

    reason: str
    """Why: nothing can end its wait, the execution stops, or a limit."""
    error: dict[str, Any] | None = None
    """Set where dropping it makes the execution fail (a limit)."""


class TokenAbsorbed(TokenEvent, frozen=True, kw_only=True, tag="token.absorbed"):
    """The token came after its join had fired (NEXT-7)."""

    round: str = ""
    """The round that it belongs to."""


class AdmitEvaluated(TokenEvent, frozen=True, kw_only=True, tag="policy.admit.evaluated"):
    """Admission decided whether the token may run its step; recorded first and on every change."""

    allow: bool
    """The verdict."""
    rule: int | None = None
    """The number of the rule that decided; None when none matched (ADM-1: allow)."""
    error: dict[str, Any] | None = None
    """A guard that could not be evaluated; it fails the execution (TPL-3)."""


# ── step runs ────────────────────────────────────────────────────────────────────────────────


class StepScheduled(StepEvent, frozen=True, kw_only=True, tag="step.scheduled"):
    """A run of the step begins; what it sees of `ctx` is settled here (SCOPE-4)."""

    tokens: list[str]
    """The tokens that it took: one, or those of a join."""
    args: dict[str, Any] | None = None
    """Merged `args` of a join (NEXT-7); None: those of the one token."""
    rounds: dict[str, int] | None = None
    """Of a join: how often the tokens' ancestry has passed each join."""


class StepRestored(StepEvent, frozen=True, kw_only=True, tag="step.restored"):
    """A run of the old execution goes on here, after what was recorded of it (RST-1)."""

    origin_run_id: str
    """What it was called there."""
    run: Any
    """Its position: pipeline or loop, with the outcomes that are kept."""


class StepParked(StepEvent, frozen=True, kw_only=True, tag="step.parked"):
    """A run that a restart took over waits for its place under the step's limit (LIMIT-2)."""

    reason: Literal["limit", "paused"] = "limit"
    """For what: a place, or, once it has one, the end of a pause."""
    key: str = ""
    """What is counted apart under the limit."""
    priority: int = 0
    """The highest goes first."""


class TokenEnqueued(StepEvent, frozen=True, kw_only=True, tag="token.enqueued"):
    """One part of a run is offered to the workers: all of it, or a range of its iterations."""

    pool: str = "default"
    """The pool whose workers may take it."""
    part: int = msgspec.field(default=0, name="leg")
    """The number of the part."""
    first: int = 0
    """The first of its iterations."""
    last: int = 0
    """The iterations `first` to `last - 1`; both 0 for a run without a distributed loop."""


class TokenClaimed(StepEvent, frozen=True, kw_only=True, tag="token.claimed"):
    """A worker holds the lease on a part."""

    worker: str
    """The worker."""
    epoch: int
    """The number of the lease; reports of another one are refused (EVT-3)."""
    part: int = msgspec.field(default=0, name="leg")
    """The part."""


class StepStarted(StepEvent, frozen=True, kw_only=True, tag="step.started"):
    """The worker has started the run."""


class StepDone(StepEvent, frozen=True, kw_only=True, tag="step.done"):
    """The step run succeeded."""

    result: Any = None
    """`_prev` at the end of the pipeline (SCOPE-3)."""
    source: Source = "worker"
    """Who reported it: the server ends what no worker sees, or no worker tells any more."""


class StepFailed(StepEvent, frozen=True, kw_only=True, tag="step.failed"):
    """The step run failed."""

    error: dict[str, Any]
    """Why (OUT-4)."""
    result: Any = None
    """Its result so far."""
    loop: dict[str, Any] | None = None
    """Of a loop: its results so far (LOOP-4)."""
    source: Source = "worker"
    """Who reported it."""


class LeaseExpired(StepEvent, frozen=True, kw_only=True, tag="lease.expired"):
    """A lease expired before its part ended; the part is offered again (WRK-1)."""

    epoch: int
    """The number of the lease."""
    part: int = msgspec.field(default=0, name="leg")
    """The part."""
    worker: str | None = None
    """Who had it."""
    returned: bool = False
    """The worker gave it back; it does not count as lost."""
    uncounted: bool = False
    """Not counted as a loss: the server was unavailable, or the execution changed servers."""


# ── task runs ────────────────────────────────────────────────────────────────────────────────


class TaskStarted(TaskEvent, frozen=True, kw_only=True, tag="task.started"):
    """The worker starts an attempt of a task."""

    kind: str
    """The kind of the task."""
    attempt: int = 1
    """Counts from 1 within the task run."""


class TaskCached(TaskEvent, frozen=True, kw_only=True, tag="task.cached"):
    """An outcome that was kept is taken: the tool is not called (CACHE-1)."""

    key: str
    """What it was kept under."""
    from_execution_id: str
    """The execution whose task gave it."""
    kept_at: int
    """When it was kept (ms)."""


class TaskDone(TaskEvent, frozen=True, kw_only=True, tag="task.done"):
    """TASK-9: everything that resuming needs, so that nothing is evaluated again."""

    attempt: int = 1
    """Counts from 1 within the task run."""
    outcome: dict[str, Any]
    """What the tool gave (OUT-1)."""
    rule: int | None = None
    """The number of the rule that matched; None: none did (TASK-2)."""
    do: Literal["continue", "retry", "jump", "break", "fail"] = "continue"
    """What follows."""
    to: str | None = None
    """Of `jump`: the task that comes next."""
    delay: float = 0.0
    """Seconds before it comes."""
    set_iter: dict[str, Any] = {}
    """What the rule wrote to `iter`, evaluated."""
    set_ctx: dict[str, Any] = {}
    """What the rule, or a nested loop's reducers, wrote to `ctx`, evaluated."""
    set_prev: Any = msgspec.UNSET
    """What the rule made of `_prev`, evaluated."""
    error: dict[str, Any] | None = None
    """Why the pipeline fails, where that is not the outcome's own error (`retry_exhausted`)."""
    inputs: dict[str, Any] = {}
    """Of an error: the inputs as they were rendered, cut short and masked, for people."""
    cache: dict[str, str] = {}
    """Of an outcome that is to be kept: as which `task`, under which `key` (CACHE-1)."""


class TaskSuspended(TaskEvent, frozen=True, kw_only=True, tag="task.suspended"):
    """TASK-8: the frame waits without a worker, until `due` (ms) or until `waits_for` happens."""

    reason: str
    """Why: the directive whose delay it is, `resumed` for the rest of one, or `wait` (WAIT-2)."""
    due: int | None = None
    """Until when, in ms since 1970."""
    waits_for: dict[str, Any] = {}
    """What must happen, where it is not the time."""
    attempt: int | None = None
    """Of the task run that waits: the number that comes next."""


class CtxPatched(Event, frozen=True, kw_only=True, tag="ctx.patched"):
    """Keys of `ctx` have new values (SCOPE-1)."""

    patch: dict[str, Any]
    """The keys and their values."""
    step: str | None = None
    """The step that wrote them."""
    step_run_id: str | None = None
    """The run that wrote them."""
    task_run_id: str | None = None
    """The task run that wrote them; None for the reducers of a loop (LOOP-5)."""


# ── routing and the end ──────────────────────────────────────────────────────────────────────


class NextEvaluated(StepEvent, frozen=True, kw_only=True, tag="next.evaluated"):
    """The router of the step decided where the token goes (NEXT-2)."""

    on: str
    """The terminal event that it decided on."""
    arcs: list[int] = []
    """The arcs that fire, by their number in the document, from 0."""
    error: dict[str, Any] | None = None
    """A guard or `args` that could not be evaluated; it names the arc and fails the execution."""


class NextFired(StepEvent, frozen=True, kw_only=True, tag="next.fired"):
    """An arc fires."""

    arc: int
    """Its number in the document, from 0."""
    to: str
    """The step that it leads to."""
    token_id: str
    """The token that it makes."""


class OrderEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    """An event that somebody ordered."""

    reason: str = ""
    """The reason given with the request."""
    sender: str = ""
    """Who ordered it: the name of a token, or the user of the machine."""


class ExecutionPaused(OrderEvent, frozen=True, kw_only=True, tag="execution.paused"):
    """Nothing new begins until it is resumed."""


class ExecutionResumed(OrderEvent, frozen=True, kw_only=True, tag="execution.resumed"):
    """The execution continues."""

    paused: int = 0
    """How long it was paused (ms): its clocks move by that (WAIT-6)."""


class ExecutionCancelled(OrderEvent, frozen=True, kw_only=True, tag="execution.cancelled"):
    """Nothing new starts and what runs is stopped: by a user or by a limit."""

    by: Literal["cancel", "fail_fast", "timeout"] = "cancel"
    """What stops it."""
    error: dict[str, Any] | None = None
    """Of `timeout`: the error that it fails with."""


class WorkflowFinished(Event, frozen=True, kw_only=True, tag="workflow.finished"):
    """Nothing runs any more (NEXT-6); from now on the status never changes."""

    status: End
    """How it ended."""
    error: dict[str, Any] | None = None
    """The first failure that no arc handled, with its step."""
    result: Any = None
    """The result of the one step at which it ended, or of several by name."""
    failures: int = 0
    """How many there were."""
    untaken: int = 0
    """Signals that nothing ever took (WAIT-4)."""


class PlaybookProcessed(Event, frozen=True, kw_only=True, tag="playbook.processed"):
    """The last event of every log."""

    status: End
    """As `workflow.finished` has it."""


Boundary = StepDone | StepFailed | LoopDone
"""What ends a step run and makes its router decide (NEXT-2)."""

AnyEvent = (
    ExecutionRequested
    | RequestEvaluated
    | ExecutionQueued
    | ExecutionAdmitted
    | WorkflowStarted
    | ExecutionRestored
    | TokenCreated
    | TokenParked
    | TokenDropped
    | TokenAbsorbed
    | AdmitEvaluated
    | StepScheduled
    | StepRestored
    | StepParked
    | TokenEnqueued
    | TokenClaimed
    | StepStarted
    | StepDone
    | StepFailed
    | LeaseExpired
    | TaskStarted
    | TaskCached
    | TaskDone
    | TaskSuspended
    | WaitStarted
    | WaitDone
    | WaitWithdrawn
    | SignalReceived
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
