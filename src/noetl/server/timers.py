"""The clocks that the server keeps: of a whole execution, and of each step run (TASK-10)."""

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from noetl.control.execution import Run
from noetl.control.timing import seconds_left, step_deadline
from noetl.messages import requests as r
from noetl.server.active import ActiveExecution

if TYPE_CHECKING:
    from noetl.server.server import Server


PAUSED = 1.0
"""Seconds after which a clock that stands still is looked at again (WAIT-6)."""


def now() -> int:
    """Milliseconds since 1970."""
    return int(time.time() * 1000)


def arm_execution(server: "Server", active: ActiveExecution) -> None:
    """DOC-4 `limits.timeout`: it counts from the start, or from the end of the queue (LIMIT-2)."""
    seconds, execution = active.plan.limits.timeout, active.execution
    if seconds is not None and execution.status != "queued" and not execution.finished:
        due = execution_due(active, seconds)
        left = max(PAUSED if is_paused(active) else 0.0, due / 1000 - time.time())
        active.timers[""] = asyncio.get_running_loop().call_later(
            left, _end_execution, server, active, seconds, due
        )


def _end_execution(server: "Server", active: ActiveExecution, seconds: float, due: int) -> None:
    """Its clock stands still while it is paused, and is moved by that (WAIT-6)."""
    if not server.is_active(active) or active.execution.status == "queued":
        return  # LIMIT-2: with its admission it is armed again
    if is_paused(active) or execution_due(active, seconds) > due:
        arm_execution(server, active)
    else:
        server.receive(active, r.TimeIsUp(seconds=seconds))


def execution_due(active: ActiveExecution, seconds: float) -> int:
    """When its time is up (ms): pauses do not count."""
    execution = active.execution
    return (execution.admitted or active.started_at) + execution.paused + int(seconds * 1000)


async def moved_by_pauses(
    active: ActiveExecution, step_run_id: str, task_run_id: str, wait: float | None = None
) -> int | None:
    """
    How far pauses have moved the end of a delay (ms), once the execution is not paused any more;
    None where it is after so many seconds (WAIT-6).
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(wait):
            await active.passes(lambda: is_paused(active))
    if is_paused(active):
        return None
    run = active.execution.runs.get(step_run_id)
    delay = run.suspended.get(task_run_id) if run is not None else None
    return 0 if delay is None else delay.moved


def is_paused(active: ActiveExecution) -> bool:
    return active.execution.status == "paused"


def arm_step(server: "Server", active: ActiveExecution, run: Run) -> None:
    """TASK-10: whoever runs it, and whoever owned it before; one timer for each run."""
    if active.plan.steps[run.step].timeout is None or run.step_run_id in active.timers:
        return
    runs = active.execution.runs
    for ended in [key for key in active.timers if key and key.partition("/")[0] not in runs]:
        active.timers.pop(ended).cancel()
    _look_again(server, active, run)


def _look_again(server: "Server", active: ActiveExecution, run: Run) -> None:
    """While nobody has the run its time has not begun: then it is asked again."""
    left = seconds_left(active.plan, run, now())
    assert left is not None, "the step has a timeout"
    left = max(left, PAUSED) if is_paused(active) else left
    active.timers[run.step_run_id] = asyncio.get_running_loop().call_later(
        left, _end_step, server, active, run.step_run_id
    )


def _end_step(server: "Server", active: ActiveExecution, run_id: str) -> None:
    run = active.execution.runs.get(run_id) if server.is_active(active) else None
    if run is None:
        return
    deadline = step_deadline(active.plan, run)
    waits = (deadline is None and active.execution.rules >= 2) or is_paused(active)
    if waits or (deadline is not None and deadline > now()):
        _look_again(server, active, run)
        return
    active.timers.pop(run_id, None)
    seconds = active.plan.steps[run.step].timeout or 0.0
    server.receive(active, r.StepTimeIsUp(step_run_id=run_id, seconds=seconds))
    server.chore(server.runner.cancel(active.execution.execution_id, run_id))
