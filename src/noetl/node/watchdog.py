"""How long did the event loop stand still, and where? Nothing may block it."""

import asyncio
import sys
import threading
import time
import traceback
from typing import NamedTuple

TICK = 0.05
"""Seconds between two looks."""
LONG = 0.2
"""Seconds: a stall that is longer is remembered with the place where the loop stood."""
KEPT = 20


class Stall(NamedTuple):
    """The loop stood still: since when, how long, and on which lines."""

    at: float
    seconds: float
    where: str


class Watchdog:
    """A task ticks on the loop; a thread looks where the loop stands when the tick is late."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.stalls: list[Stall] = []
        self._ticked = time.monotonic()
        self._where = ""
        self._stopped = threading.Event()

    @property
    def longest_ms(self) -> int:
        return int(self.longest * 1000)

    async def watch(self) -> None:
        """Until cancelled."""
        self._stopped.clear()
        looking = threading.Thread(
            target=self._look, args=(threading.get_ident(),), name="watchdog", daemon=True
        )
        self._ticked = time.monotonic()
        looking.start()
        try:
            while True:
                await asyncio.sleep(TICK)
                now = time.monotonic()
                late = now - self._ticked - TICK
                self.longest = max(self.longest, late)
                if late > LONG:
                    self.stalls = [*self.stalls[-KEPT:], Stall(time.time(), late, self._where)]
                self._ticked, self._where = now, ""
        finally:
            self._stopped.set()

    def _look(self, loop_thread: int) -> None:
        while not self._stopped.wait(LONG / 2):
            if time.monotonic() - self._ticked > LONG / 2 + TICK and not self._where:
                frame = sys._current_frames().get(loop_thread)
                if frame is not None:
                    lines = traceback.extract_stack(frame, limit=6)
                    self._where = " < ".join(
                        f"{line.filename.rpartition('/noetl/')[2]}:{line.lineno} {line.name}"
                        for line in reversed(lines)
                    )
