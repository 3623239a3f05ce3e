"""One reading for many who ask the same at the same time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Gathered(Generic[T]):
    """
    Answers by `read`, once for all who ask while a reading of the same key is under way.

    Whoever asks gets a reading that began after the question: what was ordered before is seen.
    So of one key at most one reading is under way, and one waits behind it, however many ask.
    """

    def __init__(self, read: Callable[[str], Awaitable[T]]) -> None:
        self._read = read
        self._under_way: dict[str, asyncio.Task[T]] = {}
        self._ahead: dict[str, asyncio.Task[T]] = {}

    async def __call__(self, key: str) -> T:
        ahead = self._ahead.get(key)
        if ahead is None:
            ahead = asyncio.ensure_future(self._read_next(key))
            self._ahead[key] = ahead
        # Who goes away leaves the reading to the others.
        return await asyncio.shield(ahead)

    async def _read_next(self, key: str) -> T:
        before = self._under_way.get(key)
        if before is not None:
            await asyncio.wait([before])
        this = self._ahead.pop(key)
        self._under_way[key] = this
        try:
            return await self._read(key)
        finally:
            if self._under_way.get(key) is this:
                del self._under_way[key]
