"""A running execution as plain lines: for files, pipes and terminals that can do no more."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from noetl.cli.output import print_line
from noetl.cli.running.words import awaited_words, count, error_words, seconds, short
from noetl.control.evolve import GOES_ON
from noetl.control.execution import Execution
from noetl.control.waits_held import WAITS
from noetl.late import late
from noetl.messages import events as e
from noetl.messages.places import iteration_place, place_of
from noetl.messages.times import Interval, around, called

EVERY = 5.0
"""Seconds between two lines about the progress of one loop."""
SHOWN_ITERATIONS = 5
"""Iterations of one loop that fail, or wait, and get a line each; the rest are counted."""


OLD_RUN = late(r"@[0-9]+\.0")


class LoopLine(msgspec.Struct):
    """What a loop came to so far: counts, never rows."""

    total: int
    told_at: float
    done: int = 0
    failed: int = 0
    waits: int = 0


class PlainShow:
    """Show; see its protocol. A line per start and end of a step, per retry, per failure."""

    def __init__(self, *, err: bool, now: Callable[[], float] = time.monotonic) -> None:
        self._err = err
        self._now = now
        self._began: dict[tuple[str, str], float] = {}
        self._called: dict[tuple[str, str], Interval] = {}
        """Of a step run: from the first call of a tool to the last answer, by its worker."""
        self._loops: dict[tuple[str, str], LoopLine] = {}
        self._failed: set[tuple[str, str]] = set()
        self._root: str | None = None
        self._names: dict[str, str] = {}
        self._queued: set[str] = set()

    def begin(self, execution: Execution) -> None:
        """The first decision has named it already; of a resumed one, take up its loops."""
        if self._root is None:
            self._root = execution.execution_id
            head = f"{execution.path}: execution {execution.execution_id}"
            print_line(f"{head} continues after event {execution.seq}", err=self._err)
        for run in execution.runs.values():
            if run.loop is not None:
                loop, key = run.loop, (execution.execution_id, run.step_run_id)
                self._loops[key] = LoopLine(loop.total, self._now(), loop.done, loop.failed)

    def take(self, execution: Execution, events: Sequence[e.Event]) -> None:
        execution_id = execution.execution_id
        ended = {event.step_run_id for event in events if type(event) is e.StepDone}
        for event in events:
            say = SAY.get(type(event))
            if say is None or (type(event) is e.StepStarted and event.step_run_id in ended):
                continue  # a step that is over at once gets one line
            say(self, execution_id, event)

    def hear(self, execution_id: str, place: str, text: str) -> None:
        print_line(f"{self.place(execution_id, place)} | {short(text, 10_000)}", err=True)

    def tell(self, execution_id: str, step: str, text: str) -> None:
        self.line(execution_id, step, text)

    def end(self) -> None:
        """Every line is out already."""

    # ── lines ────────────────────────────────────────────────────────────────────────────────

    def line(self, execution_id: str, step: str, text: str) -> None:
        print_line(f"{self.place(execution_id, step)}: {text}", err=self._err)

    def place(self, execution_id: str, step: str) -> str:
        """The step; of a child with the child's own path before it."""
        return f"{self._names.get(execution_id, '')}{step}"

    def requested(self, execution_id: str, event: e.ExecutionRequested) -> None:
        if self._root is None:
            self._root = execution_id
            origin = event.origin_execution_id
            more = "" if origin is None else f", restarted from {origin}{again_words(event.chosen)}"
            print_line(f"{event.path}: execution {execution_id}{more}", err=self._err)
        elif execution_id != self._root:
            self._names[execution_id] = f"{event.path} > "

    def started(self, execution_id: str, event: e.StepStarted) -> None:
        self._began[execution_id, event.step_run_id] = self._now()
        self.line(execution_id, event.step, "started")

    def done(self, execution_id: str, event: e.StepDone) -> None:
        self.line(execution_id, event.step, f"done{self.took(execution_id, event)}")

    def failed(self, execution_id: str, event: e.StepFailed) -> None:
        self._loops.pop((execution_id, event.step_run_id), None)
        took = self.took(execution_id, event)
        self._failed.add((execution_id, event.step_run_id))
        self.line(execution_id, event.step, f"failed{took}: {error_words(event.error)}")

    def took(self, execution_id: str, event: e.StepEvent) -> str:
        key = (execution_id, event.step_run_id)
        began, took = self._began.pop(key, None), self._called.pop(key, None)
        waited = None if began is None else (self._now() - began) * 1000
        if took is not None:
            spent = took[1] - took[0]  # by the worker's clock; rows may come all at once
            # A failure may have come of what was never answered.
            late = type(event) is e.StepFailed
            waited = max(spent, waited or 0) if late else spent or waited
        return "" if waited is None else f" in {seconds(waited)}"

    def task_done(self, execution_id: str, event: e.TaskDone) -> None:
        key, took = (execution_id, event.step_run_id), called(event.outcome)
        if took is not None:
            self._called[key] = around(self._called.get(key), took)
        if (event.outcome["status"] == "ok" and event.do != "retry") or key in self._loops:
            return
        why = error_words(event.outcome.get("error"))
        place = f"{event.step}.{event.task}"
        if event.do == "retry":
            text = f"attempt {event.attempt} failed: {why}; again in {event.delay:g} s"
            self.line(execution_id, place, text)
        elif event.do in GOES_ON:
            self.line(execution_id, place, f"went on after an error: {why}")

    def cached(self, execution_id: str, event: e.TaskCached) -> None:
        if (execution_id, event.step_run_id) not in self._loops:
            said = f"cached: the outcome is of execution {event.from_execution_id}"
            self.line(execution_id, f"{event.step}.{event.task}", said)

    def fired(self, execution_id: str, event: e.NextFired) -> None:
        if (execution_id, event.step_run_id) in self._failed:
            self.line(execution_id, event.step, f"its failure is handled by '{event.to}'")

    def suspended(self, execution_id: str, event: e.TaskSuspended) -> None:
        if event.reason != WAITS and (execution_id, event.step_run_id) not in self._loops:
            self.line(execution_id, f"{event.step}.{event.task}", f"waits ({event.reason})")

    def waits(self, execution_id: str, event: e.WaitStarted) -> None:
        loop = self._loops.get((execution_id, event.step_run_id))
        if loop is not None:
            loop.waits += 1
            if loop.waits > SHOWN_ITERATIONS:
                return
        place = f"{place_of(event.step, event.task_run_id)}.{event.task}"
        self.line(execution_id, place, awaited_words(event))

    # ── loops ────────────────────────────────────────────────────────────────────────────────

    def loop_started(self, execution_id: str, event: e.LoopStarted) -> None:
        if event.parent_id is None:
            key = execution_id, event.step_run_id
            self._loops[key] = LoopLine(event.total, self._now())
            self._began[key] = self._now()
            text = f"loop of {count(event.total, 'iteration')}, {event.mode}"
            self.line(execution_id, event.step, text)

    def iteration_done(self, execution_id: str, event: e.IterationDone) -> None:
        loop = self._loops.get((execution_id, event.step_run_id))
        if event.parent_id is None and loop is not None:
            loop.done += 1
            if not loop.done & 63:  # the clock is read now and then: a loop may be long and quick
                self.progress(execution_id, event.step, loop)

    def iteration_failed(self, execution_id: str, event: e.IterationFailed) -> None:
        loop = self._loops.get((execution_id, event.step_run_id))
        if event.parent_id is not None or loop is None:  # None: of a child that was taken up
            return
        loop.failed += 1
        if loop.failed <= SHOWN_ITERATIONS:
            place = iteration_place(event.step, event.iteration_id)
            self.line(execution_id, place, f"failed: {error_words(event.error)}")
        self.progress(execution_id, event.step, loop)

    def progress(self, execution_id: str, step: str, loop: LoopLine) -> None:
        now = self._now()
        if now - loop.told_at >= EVERY:
            loop.told_at = now
            failed = f", {loop.failed:,} failed" if loop.failed else ""
            self.line(execution_id, step, f"{loop.done:,} of {loop.total:,} done{failed}")

    def loop_done(self, execution_id: str, event: e.LoopDone) -> None:
        if event.parent_id is None:
            self._loops.pop((execution_id, event.step_run_id), None)
            failed = f", {event.failed:,} failed" if event.failed else ""
            took = self.took(execution_id, event)
            self.line(
                execution_id, event.step, f"{event.done:,} of {event.total:,} done{failed}{took}"
            )

    def dropped(self, execution_id: str, event: e.TokenDropped) -> None:
        why = error_words(event.error) if event.error else event.reason
        self.line(execution_id, event.step, f"token dropped ({why})")

    def cancelled(self, execution_id: str, event: e.ExecutionCancelled) -> None:
        reason = f": {short(event.reason)}" if event.reason else ""
        self.line(execution_id, "execution", f"being cancelled ({event.by}){reason}")

    def queued(self, execution_id: str, event: e.ExecutionQueued) -> None:
        key = f" for '{short(event.key)}'" if event.key else ""
        self._queued.add(execution_id)
        self.line(
            execution_id, "execution", f"queued, place {event.place:,}: its limit is reached{key}"
        )

    def admitted(self, execution_id: str, event: e.ExecutionAdmitted) -> None:
        del event
        if execution_id in self._queued:
            self._queued.discard(execution_id)
            self.line(execution_id, "execution", "admitted")

    def paused(self, execution_id: str, event: e.ExecutionPaused) -> None:
        del event
        self.line(execution_id, "execution", f"paused; continue with: noetl resume {execution_id}")

    def resumed(self, execution_id: str, event: e.ExecutionResumed) -> None:
        del event
        self.line(execution_id, "execution", "goes on")


def again_words(chosen: Sequence[str]) -> str:
    """What a restart runs again; the log names the old run too (RST-2)."""
    return f"; runs again: {', '.join(OLD_RUN.sub('', one) for one in chosen)}" if chosen else ""


def restored(show: PlainShow, execution_id: str, event: e.StepRestored) -> None:
    """A run that a restart took over; of a loop how far it had come."""
    loop = event.run.get("loop") if isinstance(event.run, dict) else None
    more = ""
    if loop is not None:
        line = LoopLine(loop["total"], show._now(), loop["done"], loop["failed"])
        show._loops[execution_id, event.step_run_id] = line
        more = f", {line.done:,} of {line.total:,} done"
    show.line(execution_id, event.step, f"goes on{more}")


SAY: dict[type[e.Event], Callable[[PlainShow, str, Any], None]] = {
    e.ExecutionRequested: PlainShow.requested,
    e.StepRestored: restored,
    e.StepStarted: PlainShow.started,
    e.StepDone: PlainShow.done,
    e.StepFailed: PlainShow.failed,
    e.TaskCached: PlainShow.cached,
    e.TaskDone: PlainShow.task_done,
    e.TaskSuspended: PlainShow.suspended,
    e.NextFired: PlainShow.fired,
    e.WaitStarted: PlainShow.waits,
    e.LoopStarted: PlainShow.loop_started,
    e.IterationDone: PlainShow.iteration_done,
    e.IterationFailed: PlainShow.iteration_failed,
    e.LoopDone: PlainShow.loop_done,
    e.TokenDropped: PlainShow.dropped,
    e.ExecutionCancelled: PlainShow.cancelled,
    e.ExecutionQueued: PlainShow.queued,
    e.ExecutionAdmitted: PlainShow.admitted,
    e.ExecutionPaused: PlainShow.paused,
    e.ExecutionResumed: PlainShow.resumed,
}
"""Events that get a line; the others are in `noetl events`."""
