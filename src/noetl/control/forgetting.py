"""
What does a restart forget? The chosen runs, and everything that came of them (RST-1).

A log is looked through once for what there is to choose from (`History`), and once for what stays
(`stays`): causes stand before their effects, so one pass finds all that came of a choice. The end
of the old execution is forgotten in any case: what it stopped goes on.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from noetl.errors import RestartRefused
from noetl.late import late
from noetl.messages import events as e
from noetl.playbook.plan import Plan
from noetl.playbook.suggest import did_you_mean

WANTED = late(r"(?P<step>[^:@]+)(@(?P<run>[0-9]+)(\.0)?)?(:(?P<indexes>([0-9]+(,[0-9]+)*)?))?")


MOST_NAMED = 100
"""Iterations of a run that a refusal names."""


class Recorded(NamedTuple):
    """An event of the old log, with its place and the time of its row (ms)."""

    seq: int
    at: int
    event: e.Event


class StepWish(msgspec.Struct, frozen=True):
    """`STEP`, `STEP@RUN` or `STEP:I,J`, as a person writes it."""

    step: str
    run: str | None = None
    indexes: frozenset[int] | None = None


def wanted(text: str) -> StepWish:
    """Read what a person wrote; raises RestartRefused."""
    found = WANTED.fullmatch(text.strip())
    if found is None:
        raise RestartRefused(
            f"expected STEP, STEP@RUN or STEP:I,J (iterations count from 0), got '{text}'"
        )
    indexes = found["indexes"]
    return StepWish(
        step=found["step"],
        run=None if found["run"] is None else f"{found['run']}.0",
        indexes=None if indexes is None else frozenset(map(int, filter(None, indexes.split(",")))),
    )


class PastRun(msgspec.Struct):
    """What the old log says of one step run."""

    run_id: str
    step: str
    total: int | None = None
    """Of a loop: how many elements it has."""
    begun: set[int] = set()
    """Iterations that ran in this log, whether they began there or went on."""
    ended: int = 0
    failed: set[int] = set()
    taken_over: bool = False
    error: dict[str, Any] | None = None
    """Why it failed, where it did."""


class RunAgain(msgspec.Struct, frozen=True):
    """What is run again."""

    runs: dict[str, frozenset[int] | None] = {}
    """Run → its iterations; None: all of it."""
    tokens: frozenset[str] = frozenset()
    """Tokens that a rule or a limit had refused for good."""
    answered: tuple[str, ...] = ()
    """Steps whose answers from outside are taken over (RST-5)."""
    anew: bool = False
    """Whether the workload is another one."""


class History:
    """What there is to choose from."""

    def __init__(self, events: Sequence[Recorded], plan: Plan) -> None:
        self.events = events
        self.plan = plan
        self.runs: dict[str, PastRun] = {}
        self.failures: list[str] = []
        """The runs whose failure failed the execution."""
        self.refused_tokens: set[str] = set()
        self.stopped: set[str] = set()
        """Runs that were cut short by the end of the execution, or whose router it silenced."""
        self.is_stopped = False
        self.workload: dict[str, Any] = {}
        for recorded in events:
            see = SEE.get(type(recorded.event))
            if see is not None:
                see(self, recorded.event)

    def fail(self, run_id: str) -> None:
        if run_id not in self.failures:
            self.failures.append(run_id)


def _evaluated(history: History, event: e.RequestEvaluated) -> None:
    history.workload = event.workload


def _scheduled(history: History, event: e.StepScheduled) -> None:
    history.runs[event.step_run_id] = PastRun(event.step_run_id, event.step)


def _restored(history: History, event: e.StepRestored) -> None:
    loop = event.run.get("loop")
    total = None if loop is None else loop["total"]
    run = PastRun(event.step_run_id, event.step, total, taken_over=True)
    if loop is not None:
        run.ended = loop.get("done", 0) + loop.get("failed", 0)
        run.begun = set(map(int, loop.get("active", {})))  # they go on here
    history.runs[event.step_run_id] = run


def _loop_started(history: History, event: e.LoopStarted) -> None:
    if event.parent_id is None:
        history.runs[event.step_run_id].total = event.total


def _iteration_started(history: History, event: e.IterationStarted) -> None:
    if event.parent_id is None:
        history.runs[event.step_run_id].begun.add(event.index)


def _iteration_done(history: History, event: e.IterationDone) -> None:
    if event.parent_id is None:
        history.runs[event.step_run_id].ended += 1


def _iteration_failed(history: History, event: e.IterationFailed) -> None:
    if event.parent_id is None and not (history.is_stopped and is_cancelled(event)):
        run = history.runs[event.step_run_id]
        run.ended += 1
        run.failed.add(event.index)


def _step_failed(history: History, event: e.StepFailed) -> None:
    if history.is_stopped and is_cancelled(event):
        history.stopped.add(event.step_run_id)
        return
    history.runs[event.step_run_id].error = event.error
    if history.plan.steps[event.step].router is None:
        history.fail(event.step_run_id)


def _next_evaluated(history: History, event: e.NextEvaluated) -> None:
    run = history.runs[event.step_run_id]
    if history.is_stopped:
        history.stopped.add(run.run_id)
    if event.error is not None or (not event.arcs and run.error is not None):
        history.fail(run.run_id)


def _token_refused(history: History, event: e.AdmitEvaluated | e.TokenDropped) -> None:
    if event.error is not None or getattr(event, "reason", "") == "limit":
        history.refused_tokens.add(event.token_id)


def _cancelled(history: History, _: e.ExecutionCancelled) -> None:
    history.is_stopped = True


SEE: dict[type[e.Event], Any] = {
    e.RequestEvaluated: _evaluated,
    e.StepScheduled: _scheduled,
    e.StepRestored: _restored,
    e.LoopStarted: _loop_started,
    e.IterationStarted: _iteration_started,
    e.IterationDone: _iteration_done,
    e.IterationFailed: _iteration_failed,
    e.StepFailed: _step_failed,
    e.NextEvaluated: _next_evaluated,
    e.AdmitEvaluated: _token_refused,
    e.TokenDropped: _token_refused,
    e.ExecutionCancelled: _cancelled,
}


def is_cancelled(event: e.StepFailed | e.IterationFailed) -> bool:
    return event.error.get("kind") == "cancelled"


# ── choosing ─────────────────────────────────────────────────────────────────────────────────


def choose(history: History, wishes: Iterable[StepWish]) -> RunAgain:
    """The runs that were named; without a name what failed. Raises RestartRefused."""
    runs: dict[str, frozenset[int] | None] = {}
    named = list(wishes)
    for wish in named:
        run = run_of(history, wish)
        before = runs.get(run.run_id, frozenset())
        if wish.indexes is None or before is None:
            runs[run.run_id] = None
        else:
            refuse_unknown(run, wish.indexes)
            runs[run.run_id] = before | wish.indexes
    return RunAgain(runs) if named else failed_in(history)


def failed_in(history: History) -> RunAgain:
    """RST-1 `--failed`: every run or iteration whose failure failed the execution."""
    if not history.failures and not history.refused_tokens and not history.is_stopped:
        raise RestartRefused(without_failure(history))
    found = {run: iterations_of(history.runs[run]) for run in history.failures}
    for run, indexes in found.items():
        if indexes is not None:
            refuse_unknown(history.runs[run], indexes)  # it failed before, and was taken over so
    return RunAgain(found, frozenset(history.refused_tokens))


def without_failure(history: History) -> str:
    """RST-1: what failed and was tolerated is run again only where it is named."""
    last = {run.step: run for run in history.runs.values()}
    tolerated = [run for run in history.runs.values() if run.failed]
    if not tolerated:
        return "nothing of it failed or was stopped; name a step: --from STEP"
    again = [
        f"--from {run.step}{'' if run is last[run.step] else f'@{number_of(run)}'}:"
        + ",".join(map(str, sorted(run.failed)[:MOST_NAMED]))
        for run in tolerated
    ]
    return (
        "nothing failed the execution: it went on after failed iterations, and --failed leaves "
        f"those as they are; run them again with: {' '.join(again)}"
    )


def number_of(run: PastRun) -> str:
    return run.run_id.partition(".")[0]


def iterations_of(run: PastRun) -> frozenset[int] | None:
    """Of a loop that failed its iterations alone; None where all of the run is at fault."""
    if run.total is None or run.error is None:
        return None
    index = run.error.get("index") if run.error.get("kind") == "loop" else None
    indexes = run.failed if index is None else run.failed | {int(index)}
    return frozenset(indexes) if indexes or run.ended < run.total else None


def run_of(history: History, wish: StepWish) -> PastRun:
    """The run that is meant: the last one of the step, unless another is named."""
    runs = [run for run in history.runs.values() if run.step == wish.step]
    if wish.step not in history.plan.steps:
        names = ", ".join(f"'{name}'" for name in history.plan.steps)
        hint = did_you_mean(wish.step, history.plan.steps, f"it has {names}")
        raise RestartRefused(f"its playbook has no step '{wish.step}'; {hint}")
    if not runs:
        raise RestartRefused(f"step '{wish.step}' has not run in it{elsewhere(history)}")
    if wish.run is None:
        return runs[-1]
    for run in runs:
        if run.run_id == wish.run:
            return run
    known = ", ".join(f"{run.step}@{number_of(run)}" for run in runs[-20:])
    named = wish.run.partition(".")[0]
    raise RestartRefused(f"step '{wish.step}' has no run {named}; it has {known}")


def elsewhere(history: History) -> str:
    first = history.events[0].event
    origin = first.origin_execution_id if isinstance(first, e.ExecutionRequested) else None
    return "" if origin is None else f"; it was restarted from {origin}, where it may have"


def refuse_unknown(run: PastRun, indexes: frozenset[int]) -> None:
    if run.total is None:
        raise RestartRefused(f"step '{run.step}' has no loop: it has no iterations to choose")
    unknown = sorted(indexes - run.begun)
    if unknown:
        listed = ", ".join(map(str, unknown))
        said = f"iteration {listed} of step '{run.step}' has not begun in it"
        over = "; it was taken over: restart the execution before" if run.taken_over else ""
        raise RestartRefused(f"{said}: its loop has {run.total}, counted from 0{over}")


def described(history: History, choice: RunAgain) -> list[str]:
    """The choice as the new log records it."""
    found = []
    for run_id, indexes in choice.runs.items():
        below = "" if indexes is None else f":{','.join(map(str, sorted(indexes)))}"
        found.append(f"{history.runs[run_id].step}@{run_id}{below}")
    return found


# ── forgetting ───────────────────────────────────────────────────────────────────────────────

GONE = (
    e.WorkflowStarted,
    e.ExecutionQueued,
    e.ExecutionAdmitted,
    e.ExecutionCancelled,
    e.ExecutionPaused,
    e.ExecutionResumed,
    e.WorkflowFinished,
    e.PlaybookProcessed,
)
"""The old execution's own course."""

ENDS = (e.StepDone, e.StepFailed, e.LoopDone, e.NextEvaluated, e.NextFired)
DROPPED = ("refused", "template", "limit")
"""Tokens that led nowhere by their own fault; the others were dropped with the execution's end."""


class Forgetting:
    """Goes through a log once, and tells of each event whether it stays."""

    def __init__(self, history: History, choice: RunAgain) -> None:
        self._plan = history.plan
        self._choice = choice
        partly = {run: at for run, at in choice.runs.items() if at is not None}
        self._open = history.stopped - choice.runs.keys() | partly.keys()
        """Runs that go on: their ends are forgotten."""
        self._indexes = partly
        self.tokens: set[str] = set()
        self.runs: set[str] = set()
        self._is_stopped = False
        self._is_begun = False

    def stays(self, event: e.Event) -> bool:
        if isinstance(event, GONE):
            self._is_stopped = self._is_stopped or isinstance(event, e.ExecutionCancelled)
            return False
        self._is_begun = self._is_begun or isinstance(event, e.ExecutionRestored)
        if isinstance(event, e.TokenCreated):
            return self._is_kept_token(event)
        if isinstance(event, e.TokenEvent):
            return self._stays_with_token(event)
        if isinstance(event, e.StepScheduled | e.StepRestored):
            tokens = getattr(event, "tokens", [])
            chosen = self._choice.runs.get(event.step_run_id, frozenset()) is None
            if chosen or not self.tokens.isdisjoint(tokens):
                self.runs.add(event.step_run_id)
        run_id = getattr(event, "step_run_id", None)
        return run_id is None or (run_id not in self.runs and self._stays_with_run(event, run_id))

    def _is_kept_token(self, event: e.TokenCreated) -> bool:
        """What a forgotten run or the end of everything made is forgotten."""
        parent = event.parent_step_run_id
        at_end = event.source is None and self._is_begun and event.step == self._plan.final
        self._is_begun = True
        if at_end or parent in self.runs or parent in self._open:
            self.tokens.add(event.token_id)
            return False
        return True

    def _stays_with_token(self, event: e.TokenEvent) -> bool:
        if event.token_id in self.tokens or event.token_id in self._choice.tokens:
            return False
        return not isinstance(event, e.TokenDropped) or event.reason in DROPPED

    def _stays_with_run(self, event: e.Event, run_id: str) -> bool:
        if self._is_stopped and was_stopped(event):
            return False
        if run_id not in self._open:
            return True
        if isinstance(event, ENDS) and getattr(event, "parent_id", None) is None:
            return False
        if isinstance(event, e.CtxPatched) and event.task_run_id is None:
            return False  # LOOP-5: what its reducers came to at its end
        return index_in(event) not in self._indexes.get(run_id, ())


def was_stopped(event: e.Event) -> bool:
    """Whether a task or an iteration ended because the execution did."""
    if isinstance(event, e.IterationFailed):
        return is_cancelled(event)
    if isinstance(event, e.TaskDone):
        error = event.error or event.outcome.get("error") or {}
        return bool(error.get("kind") == "cancelled")
    return False


def index_in(event: e.Event) -> int | None:
    """The iteration of the step's loop that an event belongs to, by its ids (EVT-0)."""
    name = getattr(event, "parent_id", None) or getattr(event, "task_run_id", None)
    if name is not None:
        return int(name.split(".")[1]) - 1
    return getattr(event, "index", None)


def kept_of(history: History, choice: RunAgain) -> Iterator[Recorded]:
    """The events that stay, in their order."""
    forgetting = Forgetting(history, choice)
    return (one for one in history.events if forgetting.stays(one.event))
