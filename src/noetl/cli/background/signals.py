"""How servers and workers learn that they are to stop."""

import asyncio
import os
import signal
import sys


def stop_on_signals() -> asyncio.Event:
    """Set by the first SIGTERM or Ctrl-C; the second leaves at once."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def told() -> None:
        if stop.is_set():
            os._exit(1)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told)
    return stop


def stop_with_parent(stop: asyncio.Event) -> None:
    """Set when standard input ends: the process that holds its other end is gone."""
    loop = asyncio.get_running_loop()
    end = sys.stdin.fileno()

    def look() -> None:
        if not os.read(end, 4096):
            loop.remove_reader(end)
            stop.set()

    loop.add_reader(end, look)
