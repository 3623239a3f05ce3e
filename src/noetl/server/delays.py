"""
When are parts begun that wait for a time (TASK-8)?

Each has a timer of the event loop, which no setting of the clock disturbs. But a clock that was
wrong when the timer was set makes it too long, and is set right some day: all that wait long share
one look at the clock. However many there are, what is not due costs nothing.
"""

import asyncio
import heapq
import time
from collections.abc import Callable
from itertools import count

from noetl.server import clocks
from noetl.server.active import ActiveExecution
from noetl.server.timers import now

SLACK = 1000
"""Delays that ended early before those that are left are sorted anew."""

Key = tuple[ActiveExecution, str, int]


class Delay:
    """One part that waits."""

    __slots__ = ("_delays", "key", "number", "timer")

    def __init__(self, delays: "Delays", number: int, key: Key, left: float) -> None:
        self._delays = delays
        self.number = number
        self.key = key
        self.timer = asyncio.get_running_loop().call_later(left, delays.end, self)

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        self.timer.cancel()
        self._delays.forget(self)


class Delays:
    """The parts of one server that wait, and what to do with each when its time has come."""

    def __init__(self, offer: Callable[[Key], None]) -> None:
        self._offer = offer
        self._numbers = count()
        self._long: dict[int, Delay] = {}
        """Those for which the clock is looked at."""
        self._due: list[tuple[int, int]] = []
        """When, and which: a heap."""
        self._looking: asyncio.TimerHandle | None = None

    def add(self, key: Key, due: int) -> bool:
        """Whether it is not due yet (ms), and is offered later."""
        left = due / 1000 - time.time()
        if left <= 0:
            return False
        active, name = key[0], name_of(key)
        if (before := active.timers.get(name)) is not None:
            before.cancel()
        delay = active.timers[name] = Delay(self, next(self._numbers), key, left)
        if left > clocks.LOOK:
            self._long[delay.number] = delay
            heapq.heappush(self._due, (due, delay.number))
            self._look_later()
        return True

    def end(self, delay: Delay) -> None:
        """Its time has come, by whichever clock."""
        delay.cancel()
        delay.key[0].timers.pop(name_of(delay.key), None)
        self._offer(delay.key)

    def forget(self, delay: Delay) -> None:
        self._long.pop(delay.number, None)
        if len(self._due) > 2 * len(self._long) + SLACK:
            self._due = [one for one in self._due if one[1] in self._long]
            heapq.heapify(self._due)

    def _look_later(self) -> None:
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(clocks.LOOK, self._look)

    def _look(self) -> None:
        self._looking = None
        moment = now()
        while self._due and self._due[0][0] <= moment:
            delay = self._long.get(heapq.heappop(self._due)[1])
            if delay is not None:
                self.end(delay)
        if self._long:
            self._look_later()


def name_of(key: Key) -> str:
    """Among the timers of an execution."""
    return f"{key[1]}/{key[2]}"
