"""The clock of waits (WAIT-3): one timer for each execution, however many of its tasks wait."""

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from noetl.control.execution import Execution
from noetl.control.waits import next_due
from noetl.control.waits_held import find_wait, pending
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.server.timers import now

if TYPE_CHECKING:
    from noetl.server.active import ActiveExecution
    from noetl.server.server import Server

AT_ONCE = 200
"""Waits that end with one row of the log: others have their turn in between."""

LOOK = 30.0
"""Seconds after which a timer looks at the clock again: somebody may have set it."""

Due = tuple[int, str, str]
"""When, and which step run and task run."""


class Strikes:
    """Clocks of many executions often strike at once: one a turn of the loop, others in between."""

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()

    def add(self, strike: Callable[[], None]) -> None:
        self._due.append(strike)
        if len(self._due) == 1:
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        strike = self._due.popleft()
        if self._due:
            asyncio.get_running_loop().call_soon(self._turn)
        strike()


class WaitClock:
    """The waits of one execution that a time can end; the state can always make it again."""

    def __init__(self, server: "Server", active: "ActiveExecution") -> None:
        self._server = server
        self._active = active
        self._heap: list[Due] = []
        self._timer: asyncio.TimerHandle | None = None
        self._armed: int | None = None

    def follow(self, events: list[e.Event]) -> None:
        """What a decision began to wait for; a pause moves every clock (WAIT-6)."""
        execution = self._active.execution
        for event in events:
            if isinstance(event, e.WaitStarted):
                self._add(execution, event.step_run_id, event.task_run_id)
            elif isinstance(event, e.ExecutionResumed):
                self.begin()
                return
        self._arm()

    def begin(self) -> None:
        """Whatever waits in the state, of an execution that is taken up or goes on."""
        execution = self._active.execution
        self._heap = []
        for wait in pending(execution):
            self._add(execution, wait.step_run_id, wait.task_run_id)
        self._arm()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _add(self, execution: Execution, run_id: str, task_run_id: str) -> None:
        wait = find_wait(execution, run_id, task_run_id)
        due = None if wait is None or wait.done is not None else next_due(wait)
        if due is not None:
            heapq.heappush(self._heap, (due, run_id, task_run_id))

    def _arm(self) -> None:
        if not self._heap or (self._armed is not None and self._armed <= self._heap[0][0]):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed = self._heap[0][0]
        left = min(LOOK, max(0.0, self._armed / 1000 - time.time()))
        self._timer = asyncio.get_running_loop().call_later(left, self._strike)

    def _strike(self) -> None:
        self._server.strikes.add(self._look)

    def _look(self) -> None:
        self._timer = self._armed = None
        active = self._active
        if not self._server.is_active(active) or active.execution.status == "paused":
            return  # `execution.resumed` begins anew
        if active.inputs:  # its state is being read again
            self._timer = asyncio.get_running_loop().call_later(0.05, self._look)
            return
        moment = now()
        due: list[tuple[str, str]] = []
        while self._heap and self._heap[0][0] <= moment and len(due) < AT_ONCE:
            due.append(heapq.heappop(self._heap)[1:])
        if due:
            self._server.receive(active, r.WaitsDue(waits=due))
        self._arm()
