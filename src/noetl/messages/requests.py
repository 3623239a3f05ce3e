"""What reaches the control plane: orders of clients, reports of workers, the passing of time."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from noetl.messages.events import Event
from noetl.messages.written import WrittenValues

RULES = 5
"""
The rules that new executions are decided by. A log names its own (`ExecutionRequested.rules`):

1. Every lease that ran out counts as a lost worker; times are not part of the state.
2. Progress forgives losses, which are told with the workers' names; runs know since when they run;
   events are fitted as a whole (decision 0042); nested reducers count each write once, and what
   they gather lies in chunks (LOOP-5).
3. The end of a run says who told it where that was the server (EVT-1). An undefined name is told
   with the one that may have been meant (VAL-5).
4. The templates of one decision share their turns, and filters cost what they take (TPL-5); a
   `loop.in` that is no list is told of in other words; messages count arcs from 1.
   `execution.resumed` says how long the pause was, and the clocks move by it (WAIT-6).
5. A loop writes those reduced keys that an iteration wrote, and leaves the others alone; what two
   iterations wrote alike, neither may change; of a loop that is cut short every iteration counts
   that ended, also behind one that did not (LOOP-5). A token that got its place and is one too
   many stops the others at once, where `fail_fast` is set (NEXT-5).
"""


class LimitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the limit on executions of a playbook said to a start (LIMIT-2)."""

    limit: str
    key: str = ""
    priority: int = 0
    place: int = 0
    """0: it may begin."""


class KeptRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that a restart goes on with."""

    step: str
    origin_run_id: str
    run: Any
    """Its position, as JSON has it."""


class KeptState(msgspec.Struct, frozen=True, kw_only=True):
    """What a restart takes over from the old execution (RST-1)."""

    workload: dict[str, Any]
    ctx: dict[str, Any]
    leaves: dict[str, Any]
    kept: Any
    """Counts, meetings and failures, as JSON has them."""
    runs: list[KeptRun] = []
    tokens: list[dict[str, Any]] = []
    """The fields of each `token.created`, without its id."""


class StartExecution(msgspec.Struct, frozen=True, kw_only=True):
    """Run a playbook. The payload reaches `workload` and nothing else (DOC-3)."""

    execution_id: str
    path: str
    digest: str
    folder: str | None = None
    version: str | None = None
    payload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    store: str = "files"
    trace_id: str | None = None
    parent_execution_id: str | None = None
    parent_id: str | None = None
    """The task run of the parent that asked for it."""
    origin_execution_id: str | None = None
    origin_seq: int | None = None
    chosen: list[str] = []
    kept: KeptState | None = None
    """Of a restart (RST): the old execution, what is run again, and what is not."""
    trigger: str | None = None
    """The key of the start, where a trigger asked for it (START-2)."""
    depth: int = 0
    """How many executions in a row were started by the end of the one before (START-6)."""
    sender: str = ""
    """Who asks for it."""
    rules: int = RULES
    refused: dict[str, Any] | None = None
    """Why nothing of it runs: the playbook is not there, or not valid (SRV-2)."""
    limit: LimitAnswer | None = None
    """Where its playbook has a limit."""
    written: WrittenValues | None = None
    """Its large values as JSON, where somebody has written them down already."""


class PlainOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An order that carries nothing but who gave it, and why."""

    reason: str = ""
    sender: str = ""


class CancelExecution(PlainOrder, frozen=True, kw_only=True):
    """NEXT-8."""


class PauseExecution(PlainOrder, frozen=True, kw_only=True):
    """Let nothing new begin."""


class ResumeExecution(PlainOrder, frozen=True, kw_only=True):
    """End a pause."""


class SendSignal(msgspec.Struct, frozen=True, kw_only=True):
    """WAIT-4."""

    signal: str
    data: Any = None
    sender: str = ""
    signal_id: str | None = None


class AnswerApproval(msgspec.Struct, frozen=True, kw_only=True):
    """WAIT-5: what a person said to the approval that this task run waits for."""

    task_run_id: str
    label: str = ""
    approved: bool
    sender: str = ""
    reason: str = ""
    fields: dict[str, Any] = {}
    """Of its form."""
    asked: int | None = None
    """The `seq` of the question: a retry asks anew, perhaps somebody else, in the same task run."""


AnyOrder = CancelExecution | PauseExecution | ResumeExecution | SendSignal | AnswerApproval
Order = Literal["cancel", "pause", "resume"]

PLAIN_ORDERS: dict[str, type[CancelExecution | PauseExecution | ResumeExecution]] = {
    "cancel": CancelExecution,
    "pause": PauseExecution,
    "resume": ResumeExecution,
}
"""Those that carry nothing but a reason, by the last word of their route."""

ORDERS: dict[str, type[AnyOrder]] = {
    **PLAIN_ORDERS,
    "signal": SendSignal,
    "answer": AnswerApproval,
}
"""What a client may order, by the name under which it waits in an inbox with all its fields."""


class LimitGranted(msgspec.Struct, frozen=True, kw_only=True):
    """There is a place under a limit, for the execution or for one run of a step (LIMIT-2)."""

    holder: str = ""
    """The step run that it is for; empty: the execution."""


class TimeIsUp(msgspec.Struct, frozen=True, kw_only=True):
    """The execution's own `timeout` has passed (DOC-4)."""

    seconds: float


class StepTimeIsUp(msgspec.Struct, frozen=True, kw_only=True):
    """The `timeout` of a step run has passed, whoever runs it (TASK-10)."""

    step_run_id: str
    seconds: float


class WaitsDue(msgspec.Struct, frozen=True, kw_only=True):
    """The clock says that these waits are over: by their time, or by their timeout (WAIT-3)."""

    waits: list[tuple[str, str]]
    """Step run and task run of each."""


class PartClaimed(msgspec.Struct, frozen=True, kw_only=True):
    """A worker has a part and has not reported yet: a server that stops says so to the next."""

    step_run_id: str
    part: int
    epoch: int
    worker: str


class LeaseLost(msgspec.Struct, frozen=True, kw_only=True):
    """The lease on a part ran out: its worker is gone or cut off (WRK-1), or it gave it back."""

    step_run_id: str
    part: int
    epoch: int
    returned: bool = False
    """Given back by a worker that stops, or whose task waits long (TASK-8): nothing was lost."""
    counted: bool = True
    """Whether the worker died while it ran this work; nobody's loss otherwise (T11, T21)."""
    worker: str | None = None
    """Who had it; a claim that the log has not heard of is recorded with its end (T11)."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker did since its last report on a part of a run, in order."""

    step_run_id: str
    part: int
    epoch: int
    worker: str
    events: list[Event]
    after: int | None = 0
    """
    How many events of this part and epoch were reported before: the report's number (EVT-3).
    None where the server speaks in the place of a worker.
    """
    beside: "Sequence[Report]" = ()
    """
    Of other parts of the same loop, from the same turn of one worker: they are one decision, and
    what may start next is handed out once, as one part (decision 0077).
    """


Input = (
    StartExecution
    | CancelExecution
    | PauseExecution
    | ResumeExecution
    | LimitGranted
    | SendSignal
    | AnswerApproval
    | TimeIsUp
    | StepTimeIsUp
    | WaitsDue
    | PartClaimed
    | LeaseLost
    | Report
)
"""Everything that `decide` can be asked about."""
