"""
The state of one execution: what the fold of its log comes to.

It holds what is live (tokens that wait, runs in flight, ctx) and a few counts, never history:
its size follows what is running, not what has been (EVT-5).
"""

from typing import Any, Literal

import msgspec

from noetl.messages.envelope import timestamp
from noetl.messages.events import StepParked
from noetl.pipeline.frame import Frame, Iteration, TaskWait
from noetl.playbook.plan import Plan

Status = Literal["queued", "running", "paused", "completed", "failed", "cancelled"]


class Token(msgspec.Struct, kw_only=True):
    """A token that has not led to a run yet."""

    token_id: str
    step: str
    args: dict[str, Any]
    seq: int
    """Of its `token.created`: the cause of the run that it leads to (EVT-0)."""
    source: str | None = None
    parent_step_run_id: str | None = None
    rounds: dict[str, int] = {}
    verdict: bool | None = None
    """The admission's last answer; None: not asked yet (ADM-4)."""
    waits: Literal["refused", "join", "paused", "limit", ""] = ""
    key: str = ""
    """Of `limit`: what is counted apart, and which goes first."""
    priority: int = 0
    round: str = ""
    """At a join: the round in which it meets others (NEXT-7)."""


class Part(msgspec.Struct, kw_only=True):
    """A part of a run that one worker owns at a time: the whole run, or a range of iterations."""

    part: int = msgspec.field(name="leg")
    first: int = 0
    last: int = 0
    left: int = 1
    """Iterations of it that have not ended."""
    epoch: int = 0
    worker: str | None = None
    taken: int = 0
    """Events that were reported on it in this epoch: the number of the next report (EVT-3)."""
    lost: int = 0
    """How many workers were lost on it since its last progress (T11: the third fails the run)."""
    workers: list[str] = []
    """Those workers."""


class Ended(msgspec.Struct, array_like=True):
    """An iteration that ended before a lower one did: it waits to be folded."""

    result: Any = None
    error: dict[str, Any] | None = None
    writes: list[tuple[str, Any]] = []


class Pile(msgspec.Struct, kw_only=True):
    """Values folded in index order; what is too much to keep lies in chunks outside (LOOP-9)."""

    values: list[Any] = []
    weight: int = 0
    """About how many bytes `values` has."""
    count: int = 0
    chunks: list[Any] = []
    """References to what came before `values`, in order."""


class LoopRun(msgspec.Struct, kw_only=True):
    """The position of a loop (LOOP-9): bounded by what is in flight, not by its length."""

    total: int
    items: Any
    mode: Literal["sequential", "parallel"]
    exec: Literal["local", "distributed"]
    offered: int = 0
    """The lowest index that was never offered to a worker."""
    low: int = 0
    """The lowest index that has not ended: everything below is folded."""
    done: int = 0
    failed: int = 0
    active: dict[int, Iteration] = {}
    ended: dict[int, Ended] = {}
    results: Pile = msgspec.field(default_factory=Pile)
    errors: Pile = msgspec.field(default_factory=Pile)
    first_failed: tuple[int, dict[str, Any]] | None = None
    writes: dict[str, tuple[int, Any]] = {}
    """Parallel: who wrote a ctx key first, and what (LOOP-5)."""
    reduced: dict[str, Any] = {}
    piles: dict[str, Pile] = {}
    """What `append` and `extend` come to: as bounded as the results (LOOP-9)."""
    bases: dict[str, Any] = {}
    """What a reducer begins with where that lies outside: it is added at the end."""
    reduces: list[str] = []
    """The keys that some iteration gave to a reducer: only these are written (rules 5)."""


class Suspension(msgspec.Struct, kw_only=True):
    """Why a run holds no worker, and until when (TASK-8)."""

    task_run_id: str
    reason: str
    due: int | None = None
    waits_for: dict[str, Any] = {}
    since: int = 0
    moved: int = 0
    """How far pauses of the execution have moved its end (ms): who sleeps it out asks (WAIT-6)."""


class Run(msgspec.Struct, kw_only=True):
    """A step run in flight."""

    step_run_id: str
    step: str
    args: dict[str, Any]
    ctx: dict[str, Any]
    """As of `step.scheduled`, plus its own writes (SCOPE-4)."""
    rounds: dict[str, int] = {}
    frame: Frame | None = None
    loop: LoopRun | None = None
    parts: dict[int, Part] = msgspec.field(default_factory=dict, name="legs")
    next_part: int = msgspec.field(default=0, name="next_leg")
    started: bool = False
    since: int | None = None
    """When a worker first had it (ms): its timeout counts from then on (TASK-10)."""
    suspended: dict[str, Suspension] = {}
    """By task run id: a loop may have several."""
    waits: dict[str, TaskWait] = {}
    """The same for waits (WAIT-2); those of a distributed loop stand with their iterations."""
    parked: StepParked | None = None
    """Of a run that a restart took over: what it waits for before it goes on (LIMIT-2)."""

    @property
    def ids(self) -> dict[str, Any]:
        """What every event of this run carries."""
        return {"step": self.step, "step_run_id": self.step_run_id}


class Meeting(msgspec.Struct, kw_only=True):
    """
    The tokens at one join (NEXT-7). A round is `{pass}/{number}`: how often the token's ancestry
    has passed this join, and the token's number from its source within that pass.
    """

    arrived: dict[str, int] = {}
    """`{pass}/{source}` → how many tokens came."""
    waiting: dict[str, dict[str, str]] = {}
    """Round → source → token id."""
    fired: dict[str, bool] = {}
    """Rounds that fired and for which a token may still come (`any`, `n`)."""


class Tally(msgspec.Struct):
    """What happened at one step so far."""

    runs: int = 0
    failed: int = 0
    status: str = "running"


class Failure(msgspec.Struct):
    """The failure of a step."""

    step: str
    error: dict[str, Any]


class KeptSignal(msgspec.Struct, kw_only=True):
    """A signal that nothing took yet (WAIT-4)."""

    signal: str
    data: Any
    sender: str
    at: int
    """In ms since 1970."""

    @property
    def seen(self) -> dict[str, Any]:
        """As guards see it (WAIT-1)."""
        return {
            "name": self.signal,
            "data": self.data,
            "by": self.sender,
            "at": timestamp(self.at),
        }


class KeptCounts(msgspec.Struct, kw_only=True):
    """What a restart takes over beside ctx, tokens and runs (RST-1)."""

    meetings: dict[str, Meeting] = {}
    tallies: dict[str, Tally] = {}
    step_runs: int = 0
    failures: list[Failure] = []
    failed: int = 0
    errors_passed: int = 0
    failures_handled: int = 0
    signals: list[KeptSignal] = []
    """Those that nothing had taken (WAIT-4)."""
    answered: list[str] = []
    """Steps at which somebody answered in an execution before (RST-5)."""


class Execution(msgspec.Struct, kw_only=True):
    """One run of a playbook."""

    execution_id: str
    seq: int = 0
    now: int = 0
    """The time of the row that is being decided or folded (ms), by the server's clock."""
    rules: int = 1
    status: Status = "running"
    path: str = ""
    version: str | None = None
    digest: str = ""
    store: str = "files"
    largest: int = 1_048_576
    """`max_payload_bytes` (EVT-4)."""
    trace_id: str | None = None
    parent_execution_id: str | None = None
    origin_execution_id: str | None = None
    origin_seq: int | None = None
    """Of a restart: the execution that it goes back to, and how long that one's log was."""
    workload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    tokens: dict[str, Token] = {}
    runs: dict[str, Run] = {}
    meetings: dict[str, Meeting] = {}
    tallies: dict[str, Tally] = {}
    step_runs: int = 0
    leaves: dict[str, Any] = {}
    """The last result of each step whose run fired no arc."""
    ending: tuple[str, Any, dict[str, Any] | None] | None = None
    """The boundary whose router has not answered yet: step, result, error."""
    failures: list[Failure] = []
    failed: int = 0
    errors_passed: int = 0
    """Errors after which it went on: a policy let them pass, or a loop its failed iterations."""
    failures_handled: int = 0
    """Failures of steps that an arc took (NEXT-3)."""
    first_handled: Failure | None = None
    stop: Literal["", "cancel", "fail_fast", "timeout"] = ""
    """Why nothing new may start."""
    final_done: bool = False
    finished: bool = False
    limit_key: str = ""
    admitted: int = 0
    """When it got its place after it was queued (ms): its time counts from then on."""
    error: dict[str, Any] | None = None
    paused_at: int | None = None
    """Since when it is paused (ms)."""
    paused: int = 0
    """How long it was paused so far (ms): its timeout does not count that (WAIT-6)."""
    signals: list[KeptSignal] = []
    signal_ids: dict[str, None] = {}
    """The last ids that senders gave their signals: the same one twice is one (WAIT-4)."""
    answers: dict[str, str] = {}
    """Step, with its iteration → who answered its last approval, in words (WAIT-5)."""
    bodies: dict[str, bytes] = {}
    """Bodies that the last decision made and that must be stored before it (EVT-4)."""

    @property
    def quiet(self) -> bool:
        """Nothing runs: what waits now waits for nothing that could still happen."""
        return not self.runs


def is_stopped(execution: Execution, plan: Plan, step: str) -> bool:
    """Nothing new starts; but the final step runs after a timeout or a failure too (NEXT-6)."""
    stop = execution.stop
    return stop != "" and (stop == "cancel" or step != plan.final)
