"""
Who writes into the log: a task that sends one statement at a time, so a commit costs one round
trip.

A commit whose answer was lost is settled by reading again: each one carries a number, which it
writes into the row of this process; a new connection raises the term in that row, which waits for
a commit still under way and shuts out one that has not begun. After that the number in the row
tells whether it was committed (decision 0033).
"""

import asyncio
from collections import deque
from contextlib import suppress
from functools import partial
from typing import Any

import asyncpg

from noetl.adapters.batching import MOST_PER_COMMIT, BatchWriter, DecisionBatch, Entry, batches
from noetl.adapters.postgres.batch import everything, lone, moved
from noetl.adapters.postgres.door import Door, ServerWait
from noetl.adapters.postgres.faults import AWAY, OF_THE_WORLD, Struck, unavailable
from noetl.adapters.postgres.lease import ProcessLease
from noetl.adapters.postgres.statements import SQL
from noetl.errors import LogUnavailable
from noetl.ports.event_log import clock

WROTE_ONE = "INSERT 0 1"


class PostgresWriter(BatchWriter):
    """The one hand that writes. All methods are called on the thread of the event loop."""

    def __init__(self, door: Door, lease: ProcessLease) -> None:
        super().__init__(f"at {door.place}")
        self._door = door
        self.lease = lease
        self._wait = ServerWait(door)
        self._queue: deque[Entry] = deque()
        self._connection: asyncpg.Connection | None = None
        self._connecting = asyncio.Lock()
        self._term = 0
        self._number = 0
        self._working: asyncio.Task[None] | None = None

    async def enter(self) -> None:
        """Make this process known to the others, for alive."""
        await self.drain()
        if not self.lease.held:
            await self._door.patiently(self._connected)
        elif clock() >= self.lease.sure_until:
            await self._door.patiently(self.lease.renew)

    async def close(self) -> None:
        """Write what is queued and leave."""
        if self._closed:
            return
        await self._finish()
        await self.lease.end()
        if self._connection is not None:
            with suppress(*AWAY, asyncpg.PostgresError):
                await self._connection.close()
            self._drop()

    def _hand_over(self, gathered: list[Entry]) -> None:
        self._queue.extend(gathered)
        if self._working is None:
            self._working = self._loop.create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._queue:
                count = min(len(self._queue), MOST_PER_COMMIT)
                entries = [self._queue.popleft() for _ in range(count)]
                for batch in batches(entries, self._refused):
                    batch.lines = self._take_lines()
                    if batch.chains or batch.lines:
                        await self._commit(batch)
                    batch.settle()
                self._unsettled -= count
        finally:
            self._working = None

    async def _commit(self, batch: DecisionBatch) -> None:
        """Write the batch; the answers are in it then."""
        self._number += 1
        try:
            missed = await self._wait.until(lambda: self._attempt(batch))
        except LogUnavailable as refusal:
            batch.give_up(partial(_onward, refusal))
        except Exception as error:
            await self._give_up(batch, error)
        else:
            if missed:
                await self._tell_missed(batch, missed)

    async def _give_up(self, batch: DecisionBatch, error: Exception) -> None:
        if isinstance(error, OF_THE_WORLD) or len(batch.chains) + len(batch.lines) <= 1:
            batch.give_up(lambda name: unavailable(error, self._door.place, name))
            return
        for part in batch.parts():
            await self._commit(part)

    async def _attempt(self, batch: DecisionBatch) -> list[str]:
        """Send it, unless an earlier attempt turns out to have been committed: who was missed."""
        try:
            if self._connection is None or self._connection.is_closed():
                known = await self._connected()
                if known is not None and known["batch"] == self._number:
                    return await self._settled(batch, known["xid"])
            return await self._send(batch)
        except AWAY:
            self._drop()
            raise

    async def _send(self, batch: DecisionBatch) -> list[str]:
        assert self._connection is not None, "connected before"
        me = self.lease.token
        alone = lone(batch)
        if alone is not None:
            told = await self._connection.execute(
                SQL["append_one"], me, self._term, self._number, *alone
            )
            if told == WROTE_ONE:
                return []
            # The number is spent; the statement for many tells what was wrong.
            self._number += 1
        columns: list[Any] | None = moved(batch)
        name, columns = ("append_moved", columns) if columns else ("append_all", everything(batch))
        found = await self._connection.fetchrow(SQL[name], me, self._term, self._number, *columns)
        if not found["mine"]:
            raise Struck("this process is not known to the database any more")
        return list(found["missed"])

    async def _settled(self, batch: DecisionBatch, xid: Any) -> list[str]:
        """Which executions the commit without an answer did not advance."""
        assert self._connection is not None, "connected before"
        names = list(batch.chains)
        firsts = [chain.expected + 1 for chain in batch.chains.values()]
        written = await self._connection.fetch(SQL["settled"], names, firsts, xid)
        return list(set(names) - {row["execution_id"] for row in written})

    async def _tell_missed(self, batch: DecisionBatch, missed: list[str]) -> None:
        """The batch is committed; this only finds words for those that were too late."""
        found: dict[str, int] | None = None
        with suppress(*AWAY, asyncpg.PostgresError):
            assert self._connection is not None, "connected before"
            rows = await self._connection.fetch(SQL["stand_at"], missed)
            found = {row["execution_id"]: row["seq"] for row in rows}
        for name in missed:
            batch.too_late(name, None if found is None else found.get(name, 0))

    async def _connected(self) -> Any:
        """After a new connection, which shuts out the one before: the last commit of both."""
        async with self._connecting:
            if self._connection is not None and not self._connection.is_closed():
                return None
            self._drop()
            connection = await self._door.connect()
            try:
                known = await self.lease.begin(connection)
            except BaseException:
                connection.terminate()
                raise
            self._connection, self._term = connection, known["term"]
            return known

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


def _onward(refusal: LogUnavailable, name: str | None) -> LogUnavailable:
    """The same refusal with the way to go on with this execution."""
    if name is None:
        return refusal
    words = str(refusal).removesuffix(" and try again")
    return LogUnavailable(f"{words} and run `noetl resume {name}`")
