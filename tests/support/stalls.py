"""How long does an event loop stand still while something is done on it?"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

TICK = 0.01
FLOOR = 0.2
"""Seconds that a busy machine may take anyway."""


class Ticker:
    """Ticks every 10 ms; `longest` is the longest time between two ticks."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def tick(self) -> None:
        before = time.perf_counter()
        while True:
            await asyncio.sleep(TICK)
            now = time.perf_counter()
            self.longest = max(self.longest, now - before)
            before = now


@asynccontextmanager
async def no_stall() -> AsyncIterator[None]:
    """
    Fails where the loop stands still ten times as long as an idle one beside it.

    The idle one has a thread of its own and shares the interpreter: whoever keeps that to himself
    would stop both, so that it is the floor which tells.
    """
    idle, busy = Ticker(), Ticker()
    loop = asyncio.new_event_loop()
    beside = threading.Thread(target=loop.run_forever, daemon=True)
    beside.start()
    other = asyncio.run_coroutine_threadsafe(idle.tick(), loop)
    here = asyncio.create_task(busy.tick())
    await asyncio.sleep(0)
    try:
        yield
        await asyncio.sleep(0)
    finally:
        here.cancel()
        await asyncio.gather(here, return_exceptions=True)
        other.cancel()
        loop.call_soon_threadsafe(loop.stop)
        beside.join()
        loop.close()
    allowed = max(FLOOR, 10 * idle.longest)
    assert busy.longest < allowed, f"stood still for {busy.longest:.3f} s; idle {idle.longest:.3f}"
