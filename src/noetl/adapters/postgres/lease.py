"""That this process lives, by the clock of the database: others may be on other machines."""

import asyncio
import math
import os
import socket
from contextlib import suppress
from typing import Any

import asyncpg

from noetl.adapters.postgres.faults import AWAY
from noetl.adapters.postgres.reader import PostgresReader
from noetl.adapters.postgres.statements import SQL
from noetl.ports.event_log import clock

RENEWALS = 3
"""How often a lease is renewed in its time: two may fail."""


class ProcessLease:
    """The row of this process: entered with its first write, renewed until it leaves."""

    def __init__(self, reader: PostgresReader, token: str, seconds: float) -> None:
        self.token = token
        self._reader = reader
        self._seconds = seconds
        self._renewing: asyncio.Task[None] | None = None
        self._term = 0
        self.sure_until = math.inf
        self.lapses = 0

    @property
    def held(self) -> bool:
        """Whether the others know of this process."""
        return self._renewing is not None

    async def begin(self, connection: asyncpg.Connection) -> Any:
        """Enter this process, or come again with the next term; those long dead are struck out."""
        sent, first = clock(), self._renewing is None
        row = (self.token, os.getpid(), socket.gethostname(), self._seconds, self._term + 1)
        known = await connection.fetchrow(SQL["enter"], *row)
        self._term = known["term"]
        self._extend(sent, first or known["alive"])
        if first:
            await connection.execute(SQL["strike_out"])
            self._renewing = asyncio.get_running_loop().create_task(self._renew())
        return known

    async def renew(self) -> None:
        """Stay alive; enter again where it has run out, as if it had never been."""
        sent = clock()
        if await self._reader.once("renew", self.token, self._seconds):
            self._extend(sent, alive=True)
        else:
            await self._reader.lent(self.begin)

    async def end(self) -> None:
        """Leave at once, so that nobody needs to wait for the lease to run out."""
        if self._renewing is None:
            return
        self.sure_until = -math.inf
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
                await self.renew()

    def _extend(self, sent: float, alive: bool) -> None:
        """
        Sure from when it was asked for, not from when it was answered.

        If the answer came after the time before had passed, others could take over in between,
        even if it has not run out by the clock of the database.
        """
        if not alive or clock() >= self.sure_until:
            self.lapses += 1
        self.sure_until = sent + self._seconds
