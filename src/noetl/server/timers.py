"""The clocks that only the server can keep: of a whole execution, and of a loop handed out."""

import asyncio
import time
from typing import Any, Protocol

from noetl.control.execution import Run
from noetl.messages import requests as r
from noetl.ports.desk import Taken
from noetl.server.live import Live


class Timed(Protocol):
    """The part of the server that a clock speaks to."""

    @property
    def hands(self) -> Any: ...

    def is_live(self, live: Live) -> bool: ...

    def receive(self, live: Live, given: r.Input) -> Taken: ...

    def chore(self, work: Any) -> None: ...


def arm_execution(server: Timed, live: Live) -> None:
    """DOC-4 `limits.timeout`."""
    seconds = live.plan.limits.timeout
    if seconds is not None:
        left = max(0.0, live.started_at / 1000 + seconds - time.time())
        live.timer = asyncio.get_running_loop().call_later(
            left, lambda: server.is_live(live) and server.receive(live, r.TimeIsUp(seconds=seconds))
        )


def arm_step(server: Timed, live: Live, run: Run) -> None:
    """
    TASK-10 where no single worker can tell: a loop whose iterations are handed out.

    The clock starts anew when the execution is taken up again after a crash.
    """
    step = live.plan.steps[run.step]
    seconds = step.timeout
    if seconds is None or step.loop is None or step.loop.exec == "local":
        return
    if run.step_run_id not in live.timed:
        live.timed.add(run.step_run_id)
        asyncio.get_running_loop().call_later(
            seconds, _end_step, server, live, run.step_run_id, seconds
        )


def _end_step(server: Timed, live: Live, run_id: str, seconds: float) -> None:
    live.timed.discard(run_id)
    if server.is_live(live) and run_id in live.execution.runs:
        server.receive(live, r.StepTimeIsUp(step_run_id=run_id, seconds=seconds))
        server.chore(server.hands.cancel(live.execution.execution_id, run_id))
