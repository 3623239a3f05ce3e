"""The clocks that only the server can keep: of a whole execution, and of a loop handed out."""

import asyncio
import time
from typing import Any, Protocol

from noetl.control.execution import Run
from noetl.messages import requests as r
from noetl.ports.desk import Taken
from noetl.server.active import ActiveExecution


class Timed(Protocol):
    """The part of the server that a clock speaks to."""

    @property
    def runner(self) -> Any: ...

    def is_live(self, active: ActiveExecution) -> bool: ...

    def receive(self, active: ActiveExecution, given: r.Input) -> Taken: ...

    def chore(self, work: Any) -> None: ...


def arm_execution(server: Timed, active: ActiveExecution) -> None:
    """DOC-4 `limits.timeout`."""
    seconds = active.plan.limits.timeout
    if seconds is not None:
        left = max(0.0, active.started_at / 1000 + seconds - time.time())
        active.timer = asyncio.get_running_loop().call_later(
            left,
            lambda: server.is_live(active) and server.receive(active, r.TimeIsUp(seconds=seconds)),
        )


def arm_step(server: Timed, active: ActiveExecution, run: Run) -> None:
    """
    TASK-10 where no single worker can tell: a loop whose iterations are handed out.

    The clock starts anew when the execution is taken up again after a crash.
    """
    step = active.plan.steps[run.step]
    seconds = step.timeout
    if seconds is None or step.loop is None or step.loop.exec == "local":
        return
    if run.step_run_id not in active.timed:
        active.timed.add(run.step_run_id)
        asyncio.get_running_loop().call_later(
            seconds, _end_step, server, active, run.step_run_id, seconds
        )


def _end_step(server: Timed, active: ActiveExecution, run_id: str, seconds: float) -> None:
    active.timed.discard(run_id)
    if server.is_live(active) and run_id in active.execution.runs:
        server.receive(active, r.StepTimeIsUp(step_run_id=run_id, seconds=seconds))
        server.chore(server.runner.cancel(active.execution.execution_id, run_id))
