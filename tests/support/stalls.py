"""How long does an event loop stand still while something is done on it?"""

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.support.garbage import set_aside

from noetl.cli.running.attend import settle_garbage

TICK = 0.025
FLOOR = 0.2
"""Seconds that a busy machine may take anyway."""

IDLE = f"""
import select, sys, threading, time
def compute():
    while True:
        for _ in range(100): sum(range(1000))
        time.sleep({TICK})
threading.Thread(target=compute, daemon=True).start()
longest, before = 0.0, time.perf_counter()
print("ready", flush=True)
while not select.select([sys.stdin], [], [], {TICK})[0]:
    now = time.perf_counter()
    longest, before = max(longest, now - before), now
print(longest)
"""
"""
A loop with nothing to do, which looks at the clock as often, beside a thread that computes: what
it shows is how busy the machine is for a process like ours.
"""


def waits() -> dict[str, int]:
    """Thread → nanoseconds for which it could have run, and others had the processor."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended meanwhile
            found[task.name] = int((task / "schedstat").read_text().split()[1])
    return found


class Ticker:
    """
    Ticks every 25 ms; `longest` is the longest time between two ticks, without that for which the
    machine gave its processors to others: to the loop's thread, or to the one it waited for.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self._before, self._waits = time.perf_counter(), waits()
        self.stopped = False

    def tick(self) -> None:
        now, waited = time.perf_counter(), waits()
        others = max(until - self._waits.get(name, until) for name, until in waited.items())
        self.longest = max(self.longest, now - self._before - others / 1e9)
        self._before, self._waits = now, waited
        if not self.stopped:
            asyncio.get_running_loop().call_later(TICK, self.tick)


@asynccontextmanager
async def no_stall() -> AsyncIterator[None]:
    """Fails where the loop stands still for 200 ms, and ten times as long as an idle process."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", IDLE], text=True, **pipes) as idle:  # type: ignore[call-overload]
        assert idle.stdout.readline() == "ready\n"
        gc.collect()
        settle_garbage()  # as every process of ours; what the test runner keeps is not measured
        busy = Ticker()
        busy.tick()
        try:
            yield
            busy.stopped = True
            busy.tick()
        finally:
            gc.unfreeze()
            set_aside()
            said, _ = idle.communicate("")
    allowed = max(FLOOR, 10 * float(said))
    told = f"the loop stood still for {busy.longest:.3f} s, an idle process for {float(said):.3f} s"
    assert busy.longest < allowed, told
