"""What is costly to fetch: fetched once for many callers, kept until shortly before it runs out."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

EARLY = 60.0
"""Seconds before its end at which a value is fetched anew; a fifth of a short life."""


class Fetched(NamedTuple):
    """A value, and the seconds for which it is good."""

    value: Any
    seconds: float


class Once:
    """Values by key. A failure is told to all who wait for it, and not kept."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._kept: dict[Any, tuple[float, Any]] = {}
        self._running: dict[Any, asyncio.Task[Any]] = {}

    async def value(self, key: Any, fetch: Callable[[], Awaitable[Fetched]]) -> Any:
        """The value of the key; `fetch` is called if there is none that is good for a while."""
        until, kept = self._kept.get(key, (0.0, None))
        if self._now() < until:
            return kept
        running = self._running.get(key)
        if running is None:
            running = asyncio.get_running_loop().create_task(self._fetch(key, fetch))
            self._running[key] = running
            running.add_done_callback(lambda task: self._ended(key, task))
        # Whoever began it may be cancelled; the others still wait.
        return await asyncio.shield(running)

    def last(self, key: Any) -> Any:
        """What was fetched last, good or not; None without it."""
        return self._kept.get(key, (0.0, None))[1]

    def drop(self, key: Any) -> None:
        """It turned out to be of no use."""
        self._kept.pop(key, None)

    async def close(self) -> None:
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._kept.clear()

    async def _fetch(self, key: Any, fetch: Callable[[], Awaitable[Fetched]]) -> Any:
        began = self._now()
        value, seconds = await fetch()
        self._kept[key] = (began + seconds - min(EARLY, seconds / 5), value)
        return value

    def _ended(self, key: Any, task: "asyncio.Task[Any]") -> None:
        self._running.pop(key, None)
        if not task.cancelled():
            task.exception()  # told to those who wait; nobody may be left
