"""
What a program of a peer says to the bench: one JSON line, then it waits to be looked at.

Only the standard library is used here: every program imports it inside an environment of its own.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any


class Order:
    """What the bench asks for, and how much of it is done."""

    def __init__(self, work: str, count: int, folder: str, url: str, bound: str) -> None:
        self.work, self.count, self.bound = work, count, float(bound)
        self.folder, self.url = Path(folder), url
        self.done = 0
        self._began = perf_counter()

    def begin(self) -> None:
        """The clock starts here: what was loaded and set up before does not count."""
        self._began = perf_counter()
        self.done = 0

    def one(self, *_: object) -> None:
        self.done += 1

    @property
    def took(self) -> float:
        return perf_counter() - self._began

    def end(self, **more: Any) -> None:
        """Tell the figure. `done` is less than what was asked for where the bound came first."""
        self.tell(seconds=self.took, done=self.count * (5 if self.work == "W3" else 1), **more)

    def tell(self, **found: Any) -> None:
        print("\n" + json.dumps(found), flush=True)

    def watch(self) -> None:
        """At the bound, tell how far it came and stop: a slow peer has a figure, too."""

        def over() -> None:
            if self.done:
                self.tell(seconds=self.took, done=self.done, bounded=True)
            else:
                self.tell(reason=f"nothing was done within {self.bound:.0f} s")
            wait_and_leave()

        timer = threading.Timer(self.bound, over)
        timer.daemon = True
        timer.start()


def wait_and_leave() -> None:
    """The bench looks at the memory of all processes, closes the pipe, and this one is gone."""
    sys.stdin.read()
    os._exit(0)


async def linger() -> None:
    """The same for whoever has an event loop whose tasks must live until then."""
    import asyncio

    await asyncio.to_thread(wait_and_leave)


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def asked() -> Order:
    work, count, folder, url, bound = sys.argv[1:6]
    return Order(work, int(count), folder, url, bound)


def main(works: dict[str, Callable[[Order], None]], order: Order) -> None:
    """Do what was ordered; a work that a peer does not have is refused with its reason."""
    order.watch()
    works[order.work](order)
    wait_and_leave()
