"""How runs, servers and workers learn that they are to stop."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")

ORPHANED = 30.0
"""Seconds that a worker has to end well when the server that started it is gone."""


def stop_on_signals(hurry: asyncio.Event | None = None, *, code: int = 1) -> asyncio.Event:
    """Set by the first SIGTERM or Ctrl-C; the second sets `hurry`, or leaves with `code`."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def told() -> None:
        if not stop.is_set():
            stop.set()
        elif hurry is not None and not hurry.is_set():
            hurry.set()
        else:
            os._exit(code)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told)
    return stop


async def unless(stop: asyncio.Event, work: Awaitable[T]) -> T | None:
    """What the work comes to; None if it is told to stop before, and the work is given up."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working.done():
        return working.result()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    return None


def stop_with_parent(stop: asyncio.Event, hurry: asyncio.Event) -> None:
    """Set when standard input ends: the process that holds its other end is gone."""
    loop = asyncio.get_running_loop()
    end = sys.stdin.fileno()

    def look() -> None:
        if not os.read(end, 4096):
            loop.remove_reader(end)
            stop_as_orphan(stop, hurry)

    loop.add_reader(end, look)


def stop_as_orphan(stop: asyncio.Event, hurry: asyncio.Event) -> None:
    """The process that started us is gone: end well, but within bounds."""
    stop.set()
    asyncio.get_running_loop().call_later(ORPHANED, hurry.set)
