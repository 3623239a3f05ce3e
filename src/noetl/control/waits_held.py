"""
Where the waits of a run are kept, and what a run that waits lets go of (WAIT-2).

Whoever waits has no part, so that there is nothing to lease, to lose or to offer: a run as a whole,
or an iteration of a distributed loop. When its wait is over it is offered as a part of its own.
"""

from collections.abc import Iterator

from noetl.control.execution import Execution, Run
from noetl.messages import events as e
from noetl.pipeline.frame import Iteration, TaskWait

WAITS = "wait"
"""The reason of `task.suspended` with which a worker lets go of what waits."""


def iteration_at(run: Run, task_run_id: str) -> Iteration | None:
    """The iteration of a distributed loop that a task run stands in; None: the run is one whole."""
    if run.loop is None or run.loop.exec != "distributed":
        return None
    return run.loop.active[index_at(task_run_id)]


def index_at(task_run_id: str) -> int:
    """EVT-0: `{run}.{iteration}.{task}…`."""
    return int(task_run_id.split(".", 2)[1]) - 1


def waits_at(run: Run, task_run_id: str) -> dict[str, TaskWait]:
    """The waits of whatever lets go as one: the run, or the iteration."""
    iteration = iteration_at(run, task_run_id)
    return run.waits if iteration is None else iteration.waits


def find_wait(execution: Execution, run_id: str, task_run_id: str) -> TaskWait | None:
    """A wait that is recorded; None where it never was, or its task has gone on."""
    run = execution.runs.get(run_id)
    try:
        return None if run is None else waits_at(run, task_run_id).get(task_run_id)
    except (KeyError, ValueError, IndexError):  # that iteration has ended
        return None


def waits_in(run: Run) -> Iterator[TaskWait]:
    """Every wait of a run."""
    yield from run.waits.values()
    if run.loop is not None and run.loop.exec == "distributed":
        for iteration in run.loop.active.values():
            if iteration.waits:
                yield from iteration.waits.values()


def pending(execution: Execution) -> Iterator[TaskWait]:
    """Every wait that is not over."""
    for run in execution.runs.values():
        yield from (wait for wait in waits_in(run) if wait.done is None)


def let_go(run: Run, event: e.TaskSuspended) -> None:
    """Everything of a run, or of an iteration, waits: its part ends, or goes on without it."""
    iteration = iteration_at(run, event.task_run_id)
    part = run.parts[event.part]
    if iteration is not None:
        iteration.away = "waits"
        part.left -= 1
    if iteration is None or part.left == 0:
        del run.parts[event.part]


def has_let_go(run: Run, task_run_id: str) -> bool:
    """Whether nobody has, or is offered, what this task run belongs to."""
    iteration = iteration_at(run, task_run_id)
    return not run.parts if iteration is None else iteration.away == "waits"
