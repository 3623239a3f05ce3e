"""Waiting for what an execution comes to: its next decisions, and its end."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING

from noetl.ports.event_log import LogRow

if TYPE_CHECKING:
    from noetl.node.control_plane import ControlPlane

PAGE = 200
"""Decisions that a follower reads at a time."""

ELSEWHERE = 0.5
"""Seconds between two looks at the log of an execution that another server owns."""


class Following:
    """Whoever waits is told in this process where it owns the execution, else looks at the log."""

    def __init__(self, plane: "ControlPlane") -> None:
        self._plane = plane

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
                await asyncio.sleep(min(ELSEWHERE, left))

    async def _wait_for(self, awaited: "asyncio.Future[None]", seconds: float) -> None:
        closing = asyncio.ensure_future(self._plane.closing.wait())
        try:
            await asyncio.wait(
                (awaited, closing), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            closing.cancel()

    async def follow(self, execution_id: str, *, after: int = 0) -> AsyncIterator[LogRow]:
        """
        The log from a `seq` on, and what comes until the end.

        It is read page by page as the caller takes it: a slow reader holds up nobody (T13).
        """
        await self._plane.row(execution_id)
        while not self._plane.closing.is_set():
            row = await self._plane.row(execution_id)
            rows = await self._plane.storage.log.read(execution_id, after=after, limit=PAGE)
            for found in rows:
                yield found
                after = found.last
            if rows:
                continue
            if row.finished_at is not None:
                return
            await self._news(execution_id, after)

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
