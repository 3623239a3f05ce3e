"""How a process hears at once that somebody has left a note for it."""

import asyncio
from contextlib import suppress
from typing import Any

import asyncpg

from noetl.adapters.postgres.door import FIRST_PAUSE, LONGEST_PAUSE, Door
from noetl.adapters.postgres.faults import AWAY
from noetl.adapters.postgres.statements import SQL

CHANNEL = "noetl_note"
"""Notes are announced here with the owner's token, or with nothing where there is no owner."""


class NoteListener:
    """One connection that only listens, from the first wait on, and is made again when lost."""

    def __init__(self, door: Door, me: str) -> None:
        self._door = door
        self._me = me
        self._rung = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None

    async def wait(self, timeout: float) -> bool:
        """Until it rings, or the seconds have passed: whether it rang."""
        if self._listening is None:
            self._listening = asyncio.get_running_loop().create_task(self._listen())
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._rung.wait()
        rang = self._rung.is_set()
        self._rung.clear()
        return rang

    async def close(self) -> None:
        """Stop listening."""
        if self._listening is not None:
            self._listening.cancel()
            with suppress(asyncio.CancelledError):
                await self._listening

    async def _listen(self) -> None:
        pause = FIRST_PAUSE
        while True:
            with suppress(*AWAY, asyncpg.PostgresError):
                await self._hear()
                pause = FIRST_PAUSE
                continue
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _hear(self) -> None:
        """Until the connection is lost."""
        connection = await self._door.connect()
        lost = asyncio.Event()
        try:
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(CHANNEL, self._heard)
            # What was left before, or while nobody listened, is not announced any more.
            if await connection.fetchval(SQL["any_note"], self._me):
                self._rung.set()
            await lost.wait()
        finally:
            connection.terminate()

    def _heard(self, _: Any, __: int, ___: str, owner: str) -> None:
        if owner in (self._me, ""):
            self._rung.set()
