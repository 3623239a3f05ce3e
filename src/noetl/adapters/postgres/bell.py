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


class Bell:
    """One connection that only listens, made with the first wait."""

    def __init__(self, door: Door, me: str) -> None:
        self._door = door
        self._me = me
        self._rung = asyncio.Event()
        self._connection: asyncpg.Connection | None = None
        self._connecting = asyncio.Lock()

    async def wait(self, timeout: float) -> bool:
        """Until it rings, or the seconds have passed: whether it rang."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._listen()
                await self._rung.wait()
        rang = self._rung.is_set()
        self._rung.clear()
        return rang

    async def close(self) -> None:
        """Stop listening."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*AWAY, asyncpg.PostgresError):
                await connection.close()

    async def _listen(self) -> None:
        """Come again while the server is away: whoever waits has set a limit to it."""
        pause = FIRST_PAUSE
        async with self._connecting:
            while self._connection is None or self._connection.is_closed():
                with suppress(*AWAY, asyncpg.PostgresError):
                    self._connection = await self._connected()
                    continue
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    async def _connected(self) -> asyncpg.Connection:
        connection = await self._door.connect()
        try:
            await connection.add_listener(CHANNEL, self._heard)
            connection.add_termination_listener(self._lost)
            # What was left before, nobody announces any more.
            if await connection.fetchval(SQL["any_note"], self._me):
                self._rung.set()
        except BaseException:
            connection.terminate()
            raise
        return connection

    def _heard(self, _: Any, __: int, ___: str, owner: str) -> None:
        if owner in (self._me, ""):
            self._rung.set()

    def _lost(self, connection: Any) -> None:
        """A note may have been announced to nobody: better look."""
        if connection is self._connection:
            self._rung.set()
