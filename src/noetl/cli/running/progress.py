"""What is going on, as counts: enough to draw it, however many iterations there are."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from noetl.cli.running.words import awaited_words, error_words
from noetl.control.evolve import GOES_ON
from noetl.control.execution import Execution
from noetl.messages import events as e
from noetl.messages.places import place_of
from noetl.messages.times import Interval, around, called

SHOWN_TASKS = 4
"""Task runs of one step that are drawn; the others are counted."""
SHOWN_CHILDREN = 3


class TaskProgress(msgspec.Struct):
    """A task that runs or pauses."""

    label: str
    kind: str
    attempt: int
    note: str = ""


class StepProgress(msgspec.Struct):
    """All runs of one step so far."""

    name: str
    state: str = "waits"
    runs: int = 0
    open: int = 0
    failed: int = 0
    began: float = 0.0
    took: float | None = None
    called: Interval | None = None
    """From the first call of a tool to the last answer, by the clock of the worker."""
    note: str = ""
    total: int | None = None
    """Iterations of its loop; None without one."""
    done: int = 0
    failed_iterations: int = 0
    retries: int = 0
    tasks: dict[str, TaskProgress] = {}
    children: "dict[str, ExecutionProgress]" = {}


class ExecutionProgress(msgspec.Struct):
    """One execution: its steps in the order in which they were reached."""

    execution_id: str
    path: str
    began: float
    state: str = "running"
    steps: dict[str, StepProgress] = {}
    runs: dict[str, str] = {}
    """The number of a run that has not ended → its step; ids of its tasks begin with it."""

    def step(self, name: str) -> StepProgress:
        found = self.steps.get(name)
        if found is None:
            found = self.steps[name] = StepProgress(name)
        return found


class Progress:
    """Follows every execution that this process runs; the first one is the root."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.root: ExecutionProgress | None = None
        self._known: dict[str, ExecutionProgress] = {}

    def adopt(self, execution_id: str, path: str) -> ExecutionProgress:
        """An execution whose beginning this process has not seen (`resume`), or has."""
        known = self._known.get(execution_id)
        if known is None:
            known = self._known[execution_id] = ExecutionProgress(execution_id, path, self.now())
            self.root = self.root or known
        return known

    def take_up(self, execution: Execution) -> None:
        """Whatever runs in an execution that was begun elsewhere."""
        known = self.adopt(execution.execution_id, execution.path)
        for run in execution.runs.values():
            number = run.step_run_id.partition(".")[0]
            if number in known.runs:
                continue
            step = known.step(run.step)
            known.runs[number] = run.step
            step.runs, step.open, step.began = step.runs + 1, step.open + 1, self.now()
            step.state = "running"
            if run.loop is not None:
                loop = run.loop
                step.total, step.done, step.failed_iterations = loop.total, loop.done, loop.failed

    def take(self, execution_id: str, path: str, events: Sequence[e.Event]) -> None:
        execution = self.adopt(execution_id, path)
        for event in events:
            execution.state = STATES.get(type(event), execution.state)
            follow = FOLLOW.get(type(event))
            if follow is not None:
                follow(self, execution, event)

    def requested(self, execution: ExecutionProgress, event: e.ExecutionRequested) -> None:
        parent = self._known.get(event.parent_execution_id or "")
        if parent is None or event.parent_id is None:
            return
        step = parent.runs.get(event.parent_id.partition(".")[0])
        if step is not None and len(parent.step(step).children) < SHOWN_CHILDREN:
            parent.step(step).children[execution.execution_id] = execution

    def parked(self, execution: ExecutionProgress, event: e.TokenParked) -> None:
        execution.step(event.step).note = f"token waits ({event.reason})"

    def dropped(self, execution: ExecutionProgress, event: e.TokenDropped) -> None:
        step = execution.step(event.step)
        step.note = f"token dropped ({event.reason})"
        if step.state == "waits":
            step.state = "dropped"

    def scheduled(
        self, execution: ExecutionProgress, event: e.StepScheduled | e.StepRestored
    ) -> None:
        step = execution.step(event.step)
        execution.runs[event.step_run_id.partition(".")[0]] = event.step
        if not step.open:
            step.began, step.took, step.called = self.now(), None, None
        step.runs += 1
        step.open += 1
        step.state, step.note = "running", ""

    def loop_started(self, execution: ExecutionProgress, event: e.LoopStarted) -> None:
        if event.parent_id is None:
            step = execution.step(event.step)
            step.total, step.done, step.failed_iterations = event.total, 0, 0

    def iteration_done(self, execution: ExecutionProgress, event: e.IterationDone) -> None:
        if event.parent_id is None:
            execution.step(event.step).done += 1

    def iteration_failed(self, execution: ExecutionProgress, event: e.IterationFailed) -> None:
        if event.parent_id is None:
            execution.step(event.step).failed_iterations += 1

    def task_started(self, execution: ExecutionProgress, event: e.TaskStarted) -> None:
        step = execution.step(event.step)
        if step.total is None and len(step.tasks) < SHOWN_TASKS:
            step.tasks[event.task_run_id] = TaskProgress(event.task, event.kind, event.attempt)

    def task_done(self, execution: ExecutionProgress, event: e.TaskDone) -> None:
        step = execution.step(event.step)
        took = called(event.outcome)
        if took is not None:
            step.called = around(step.called, took)
        if event.do == "retry":
            step.retries += 1
            task = step.tasks.get(event.task_run_id)
            if task is not None:
                why = error_words(event.outcome.get("error"))
                task.note = f"again in {event.delay:g} s: {why}"
        else:
            step.tasks.pop(event.task_run_id, None)
            if event.do in GOES_ON and event.outcome["status"] == "error":
                step.note = f"went on after an error: {error_words(event.outcome.get('error'))}"

    def suspended(self, execution: ExecutionProgress, event: e.TaskSuspended) -> None:
        task = execution.step(event.step).tasks.get(event.task_run_id)
        if task is not None and not task.note:
            task.note = f"waits ({event.reason})"

    def waits(self, execution: ExecutionProgress, event: e.WaitStarted) -> None:
        step = execution.step(event.step)
        task = step.tasks.get(event.task_run_id)
        if task is not None:
            task.note = awaited_words(event)
        elif step.total is not None:  # tasks of iterations are not drawn, what they wait for is
            step.note = f"{place_of(event.step, event.task_run_id)} {awaited_words(event)}"

    def ended(self, execution: ExecutionProgress, event: e.StepDone | e.LoopDone) -> None:
        if getattr(event, "parent_id", None) is None:
            self._end(execution, event, "done")

    def failed(self, execution: ExecutionProgress, event: e.StepFailed) -> None:
        step = self._end(execution, event, "failed")
        step.failed += 1
        step.note = error_words(event.error)

    def _end(self, execution: ExecutionProgress, event: e.StepEvent, state: str) -> StepProgress:
        number = event.step_run_id.partition(".")[0]
        execution.runs.pop(number, None)
        step = execution.step(event.step)
        step.open = max(0, step.open - 1)
        step.tasks = {
            key: task
            for key, task in step.tasks.items()
            if step.open and key.partition(".")[0] != number
        }
        if not step.open:
            step.took = self.now() - step.began
            if step.called is not None:
                spent = (step.called[1] - step.called[0]) / 1000
                # A failure may have come of what was never answered.
                step.took = spent if state == "done" else max(spent, step.took)
            step.state = state
            step.children.clear()
        return step

    def cancelled(self, execution: ExecutionProgress, event: e.ExecutionCancelled) -> None:
        execution.state = f"stopping ({event.by})"

    def finished(self, execution: ExecutionProgress, event: e.WorkflowFinished) -> None:
        execution.state = event.status
        if execution is not self.root:
            self._known.pop(execution.execution_id, None)


def waited(_: Progress, execution: ExecutionProgress, event: e.WaitDone) -> None:
    step = execution.step(event.step)
    if step.note.startswith(f"{place_of(event.step, event.task_run_id)} "):
        step.note = ""


def restored(progress: Progress, execution: ExecutionProgress, event: e.StepRestored) -> None:
    """A run that a restart took over, with what its loop had come to."""
    progress.scheduled(execution, event)
    loop = event.run.get("loop") if isinstance(event.run, dict) else None
    if loop is not None:
        step = execution.step(event.step)
        step.total, step.done, step.failed_iterations = loop["total"], loop["done"], loop["failed"]


STATES: dict[type[e.Event], str] = {
    e.ExecutionQueued: "queued",
    e.ExecutionAdmitted: "running",
    e.ExecutionPaused: "paused",
    e.ExecutionResumed: "running",
}
FOLLOW: dict[type[e.Event], Callable[[Progress, ExecutionProgress, Any], None]] = {
    e.ExecutionRequested: Progress.requested,
    e.TokenParked: Progress.parked,
    e.TokenDropped: Progress.dropped,
    e.StepScheduled: Progress.scheduled,
    e.StepRestored: restored,
    e.LoopStarted: Progress.loop_started,
    e.IterationDone: Progress.iteration_done,
    e.IterationFailed: Progress.iteration_failed,
    e.TaskStarted: Progress.task_started,
    e.TaskDone: Progress.task_done,
    e.TaskSuspended: Progress.suspended,
    e.WaitStarted: Progress.waits,
    e.WaitDone: waited,
    e.StepDone: Progress.ended,
    e.LoopDone: Progress.ended,
    e.StepFailed: Progress.failed,
    e.ExecutionCancelled: Progress.cancelled,
    e.WorkflowFinished: Progress.finished,
}
