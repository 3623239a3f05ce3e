"""That this process lives, by the clock of the database: others may be on other machines."""

import asyncio
import os
import socket
from contextlib import suppress
from typing import Any

import asyncpg

from noetl.adapters.postgres.faults import AWAY
from noetl.adapters.postgres.reader import Reader
from noetl.adapters.postgres.statements import SQL

RENEWALS = 3
"""How often a lease is renewed in its time: two may fail."""


class Lease:
    """The row of this process: entered with its first write, renewed until it leaves."""

    def __init__(self, reader: Reader, token: str, seconds: float) -> None:
        self.token = token
        self._reader = reader
        self._seconds = seconds
        self._renewing: asyncio.Task[None] | None = None

    @property
    def held(self) -> bool:
        """Whether the others know of this process."""
        return self._renewing is not None

    async def begin(self, connection: asyncpg.Connection) -> Any:
        """Enter this process, or come again with the next term; those long dead are struck out."""
        row = (self.token, os.getpid(), socket.gethostname(), self._seconds)
        known = await connection.fetchrow(SQL["enter"], *row)
        if self._renewing is None:
            await connection.execute(SQL["strike_out"])
            self._renewing = asyncio.get_running_loop().create_task(self._renew())
        return known

    async def end(self) -> None:
        """Leave at once, so that nobody needs to wait for the lease to run out."""
        if self._renewing is None:
            return
        self._renewing.cancel()
        with suppress(asyncio.CancelledError):
            await self._renewing
        with suppress(*AWAY, asyncpg.PostgresError):
            if await self._reader.once("strike_me_out", self.token) == 0:
                await self._reader.once("leave", self.token)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._seconds / RENEWALS)
            # A renewal that fails comes again; if all fail, the expected seq fences (EVT-3).
            with suppress(*AWAY, asyncpg.PostgresError):
                await self._reader.once("renew", self.token, self._seconds)
