"""Waiting for what an execution comes to: its next decisions, and its end."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from noetl.errors import NoetlError
from noetl.ports.event_log import ExecutionRow, LogRow

if TYPE_CHECKING:
    from noetl.node.control_plane import ControlPlane

PAGE = 200
"""Decisions that a follower reads at a time."""

ELSEWHERE = 0.5
"""Seconds between two looks at the log of an execution that another server owns."""

SHARE = 10
"""Such a look takes at most this part of the time."""

QUICKEST, SLOWEST = 0.02, 1.0
"""
Seconds between two pages of one reader, for each who follows, and at the most: what they are told
costs the server a write to each, so it makes no more than fifty in a second for one execution.
"""


class Elsewhere:
    """
    One look for all who wait for executions that are not in this process: another decides for
    them, or they are queued. A thousand children that wait for a place must not ask one by one.
    """

    def __init__(self, plane: "ControlPlane") -> None:
        self._plane = plane
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def changes(self, execution_id: str, seconds: float) -> None:
        """Returns when it may have ended or come here, at the latest after so many seconds."""
        loop = asyncio.get_running_loop()
        came = loop.create_future()
        waiting = self._waiting.setdefault(execution_id, [])
        waiting.append(came)
        if self._looking is None or self._looking.done():
            self._looking = loop.create_task(self._look())
        try:
            await asyncio.wait([came], timeout=seconds)
        finally:
            waiting.remove(came)
            if not waiting and self._waiting.get(execution_id) is waiting:
                del self._waiting[execution_id]

    async def _look(self) -> None:
        pause = ELSEWHERE
        while self._waiting:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._plane.closing.wait(), pause)
            names, began = list(self._waiting), time.monotonic()
            try:
                left = set(await self._plane.storage.executions.unfinished(names))
            except NoetlError:  # each asks for itself then, and hears of it
                left = set()
            if self._plane.closing.is_set():
                left = set()
            for name in names:
                if name not in left or self._plane.server.find(name) is not None:
                    for came in self._waiting.get(name, ()):
                        if not came.done():
                            came.set_result(None)
            pause = max(ELSEWHERE, SHARE * (time.monotonic() - began))


class Following:
    """Whoever waits is told in this process where it owns the execution, else looks at the log."""

    def __init__(self, plane: "ControlPlane") -> None:
        self._plane = plane
        self._elsewhere = Elsewhere(plane)
        self._followers: Counter[str] = Counter()
        self._reading: dict[
            tuple[str, int], asyncio.Future[tuple[ExecutionRow, Sequence[LogRow]]]
        ] = {}

    async def ended(self, execution_id: str, wait: float) -> bool:
        """Whether it has ended, after waiting so many seconds for it at the most."""
        until = time.monotonic() + wait
        while True:
            active = self._plane.server.find(execution_id)
            left = until - time.monotonic()
            stops = self._plane.closing.is_set()
            if active is not None and not active.finished.done() and left > 0 and not stops:
                await self._wait_for(active.finished, left)
                continue
            row = await self._plane.row(execution_id)
            if row.finished_at is not None or left <= 0 or stops:
                return row.finished_at is not None
            if active is None:
                await self._elsewhere.changes(execution_id, left)

    async def _wait_for(self, awaited: "asyncio.Future[None]", seconds: float) -> None:
        closing = asyncio.ensure_future(self._plane.closing.wait())
        try:
            await asyncio.wait(
                (awaited, closing), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            closing.cancel()

    async def follow(self, execution_id: str, *, after: int = 0) -> AsyncIterator[Sequence[LogRow]]:
        """
        The log from a `seq` on, and what comes until the end, in pages that are never empty.

        A page is read when the caller has taken the one before: a slow reader holds up nobody
        (T13). Those who are at the same place share what is read, and are told together, the less
        often the more they are (decision 0074).
        """
        await self._plane.row(execution_id)
        self._followers[execution_id] += 1
        try:
            while not self._plane.closing.is_set():
                row, rows = await self._read(execution_id, after)
                if rows:
                    yield rows
                    after = rows[-1].last
                    if len(rows) < PAGE:
                        await self._rest(execution_id)
                elif row.finished_at is not None:
                    return
                else:
                    await self._news(execution_id, after)
        finally:
            self._followers[execution_id] -= 1
            if not self._followers[execution_id]:
                del self._followers[execution_id]

    async def _read(self, execution_id: str, after: int) -> tuple[ExecutionRow, Sequence[LogRow]]:
        """The row and the next page of the log; who asks while it is being read gets the same."""
        key = (execution_id, after)
        reading = self._reading.get(key)
        if reading is None:
            reading = asyncio.ensure_future(self._read_now(execution_id, after))
            self._reading[key] = reading
            reading.add_done_callback(lambda _: self._reading.pop(key, None))
        return await asyncio.shield(reading)

    async def _read_now(
        self, execution_id: str, after: int
    ) -> tuple[ExecutionRow, Sequence[LogRow]]:
        row = await self._plane.row(execution_id)  # before the log: what ended has all of it
        return row, await self._plane.storage.log.read(execution_id, after=after, limit=PAGE)

    async def _rest(self, execution_id: str) -> None:
        """Until the next moment at which all who follow are told; of one reader it is near."""
        pace = min(SLOWEST, QUICKEST * self._followers[execution_id])
        at = asyncio.get_running_loop().time()
        await asyncio.sleep(pace - at % pace)

    async def _news(self, execution_id: str, after: int) -> None:
        """Wait until there may be something new after a `seq`."""
        active = self._plane.server.find(execution_id)
        if active is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._plane.closing.wait(), ELSEWHERE)
            return
        news = asyncio.Event()
        active.listeners.append(news.set)
        try:
            if active.execution.seq <= after or active.uncommitted:
                with suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), 4 * ELSEWHERE)
        finally:
            active.listeners.remove(news.set)
