"""
Who writes into the log, and when: one at a time, many decisions in one commit.

Whatever waits when a commit returns goes into the next one; no timer. A commit is one statement,
so it costs one round trip. A commit whose answer was lost is settled by reading again: each one
carries a number, which it writes into the row of this process; a new connection raises the term in
that row, which waits for a commit still under way and shuts out one that has not begun. After
that the number in the row tells whether it was committed (decision 0033).
"""

import asyncio
from collections import deque
from contextlib import suppress
from typing import Any

import asyncpg

from noetl.adapters.postgres.batch import Batch, Refused
from noetl.adapters.postgres.door import Door, Wait
from noetl.adapters.postgres.faults import AWAY, OF_THE_WORLD, Struck, unavailable
from noetl.adapters.postgres.lease import Lease
from noetl.adapters.postgres.statements import SQL
from noetl.errors import LogUnavailable
from noetl.ports.commit import Commit
from noetl.ports.event_log import Decision, PrintedLine, clock

Forget = str
"""An execution whose refusal ends here in the queue."""
Entry = tuple[Decision, Commit] | tuple[Forget, None] | tuple[None, "asyncio.Future[None]"]

MOST_PER_COMMIT = 4096
MOST_BYTES_PER_COMMIT = 16_000_000
MOST_LINES_WAITING = 1000
MOST_LINES_KEPT = 100_000
"""While the server is away; the oldest go first."""
WROTE_ONE = "INSERT 0 1"


class Writer:
    """The one hand that writes. All methods are called on the thread of the event loop."""

    def __init__(self, door: Door, lease: Lease) -> None:
        self._door = door
        self.lease = lease
        self._wait = Wait(door)
        self._queue: deque[Entry] = deque()
        self._lines: deque[PrintedLine] = deque(maxlen=MOST_LINES_KEPT)
        self._refused: Refused = {}
        self._connection: asyncpg.Connection | None = None
        self._connecting = asyncio.Lock()
        self._term = 0
        self._number = 0
        self._working: asyncio.Task[None] | None = None
        self._closed = False

    def append(self, decision: Decision) -> Commit:
        """Write one decision; the answer comes after its commit."""
        if decision.expected == 0 and decision.row is None:
            raise ValueError(f"the first decision of {decision.execution_id} comes without its row")
        commit = Commit()
        if self._closed:
            commit.settle(self._is_closed())
        else:
            self._put((decision, commit))
        return commit

    def forget(self, execution_id: str) -> None:
        """End the refusal of an execution's decisions, for those that are queued from now on."""
        self._put((execution_id, None))

    def keep(self, line: PrintedLine) -> None:
        """Write a printed line with the next commit."""
        self._lines.append(line)
        if len(self._lines) >= MOST_LINES_WAITING and self._working is None and not self._closed:
            self._start()

    async def drain(self) -> None:
        """Wait until all that was queued before is answered; printed lines are written too."""
        if self._closed:
            raise self._is_closed()
        if self._queue or self._lines or self._working is not None:
            settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._put((None, settled))
            await settled

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
        await self.drain()
        self._closed = True
        await self.lease.end()
        if self._connection is not None:
            with suppress(*AWAY, asyncpg.PostgresError):
                await self._connection.close()
            self._drop()

    def _put(self, entry: Entry) -> None:
        self._queue.append(entry)
        if self._working is None:
            self._start()

    def _start(self) -> None:
        self._working = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._queue or len(self._lines) >= MOST_LINES_WAITING:
                batch, drained = self._gather()
                if batch.chains or batch.lines:
                    await self._commit(batch)
                batch.settle()
                for waiting in drained:
                    if not waiting.done():
                        waiting.set_result(None)
        finally:
            self._working = None

    def _gather(self) -> tuple[Batch, list["asyncio.Future[None]"]]:
        """The next commit: all that waits, as far as it fits."""
        queue, batch, drained = self._queue, Batch(self._refused), []
        while queue and batch.count < MOST_PER_COMMIT and batch.size < MOST_BYTES_PER_COMMIT:
            what, waiting = queue[0]
            if isinstance(what, Decision):
                assert type(waiting) is Commit, "a decision comes with its commit"
                batch.add(what, waiting)
            elif what is None:
                assert isinstance(waiting, asyncio.Future), "a wait comes with its future"
                drained.append(waiting)
            elif what in batch.chains:
                break  # what was queued before it may still be refused
            else:
                self._refused.pop(what, None)
            queue.popleft()
        batch.lines = [self._lines.popleft() for _ in range(len(self._lines))]
        return batch, drained

    async def _commit(self, batch: Batch) -> None:
        """Write the batch; the answers are in it then."""
        self._number += 1
        batch.number = self._number
        try:
            missed = await self._wait.until(lambda: self._attempt(batch))
        except LogUnavailable as refusal:
            for name in batch.chains:
                batch.give_up(name, _onward(refusal, name))
            return
        except Exception as error:
            await self._give_up(batch, error)
            return
        if missed:
            await self._tell_missed(batch, missed)

    async def _give_up(self, batch: Batch, error: Exception) -> None:
        of_the_world = isinstance(error, OF_THE_WORLD)
        if not of_the_world and len(batch.chains) + bool(batch.lines) > 1:
            for part in batch.parts():
                await self._commit(part)
            return
        for name in batch.chains:
            batch.give_up(name, unavailable(error, self._door.place, name))

    async def _attempt(self, batch: Batch) -> list[str]:
        """Send it, unless an earlier attempt turns out to have been committed: who was missed."""
        try:
            if self._connection is None or self._connection.is_closed():
                known = await self._connected()
                if known is not None and known["batch"] == batch.number:
                    return await self._settled(batch, known["xid"])
            return await self._send(batch)
        except AWAY:
            self._drop()
            raise

    async def _send(self, batch: Batch) -> list[str]:
        assert self._connection is not None, "connected before"
        me = self.lease.token
        lone = batch.lone()
        if lone is not None:
            told = await self._connection.execute(
                SQL["append_one"], me, self._term, batch.number, *lone
            )
            if told == WROTE_ONE:
                return []
            # The number is spent; the statement for many tells what was wrong.
            self._number += 1
            batch.number = self._number
        moved = batch.moved()
        name, columns = ("append_moved", moved) if moved else ("append_all", batch.everything())
        found = await self._connection.fetchrow(SQL[name], me, self._term, batch.number, *columns)
        if not found["mine"]:
            raise Struck("this process is not known to the database any more")
        return list(found["missed"])

    async def _settled(self, batch: Batch, xid: Any) -> list[str]:
        """Which executions the commit without an answer did not advance."""
        assert self._connection is not None, "connected before"
        names = list(batch.chains)
        firsts = [chain.expected + 1 for chain in batch.chains.values()]
        written = await self._connection.fetch(SQL["settled"], names, firsts, xid)
        return list(set(names) - {row["execution_id"] for row in written})

    async def _tell_missed(self, batch: Batch, missed: list[str]) -> None:
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

    def _is_closed(self) -> LogUnavailable:
        return LogUnavailable(f"the home at {self._door.place} is closed")


def _onward(refusal: LogUnavailable, name: str) -> LogUnavailable:
    """The same refusal with the way to go on with this execution."""
    words = str(refusal).removesuffix(" and try again")
    return LogUnavailable(f"{words} and run `noetl resume {name}`")
