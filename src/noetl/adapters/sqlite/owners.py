"""Which process decides for which execution."""

import math
from typing import Any

import apsw

from noetl.adapters.processes import Process
from noetl.adapters.sqlite.database import rows_of, write
from noetl.adapters.sqlite.reader import SqliteReader
from noetl.adapters.sqlite.writer import SqliteWriter
from noetl.errors import ExecutionNotFound, HomeInUse
from noetl.ports.event_log import Adoption


class SqliteOwners:
    """Owners; see its contract. Whether a process lives is seen, so nobody is taken for dead."""

    sure_until = math.inf
    lapses = 0

    def __init__(self, writer: SqliteWriter, reader: SqliteReader, me: str) -> None:
        self._writer = writer
        self._reader = reader
        self.me = me

    async def claim(self, execution_id: str) -> bool:
        def claim(connection: apsw.Connection) -> bool:
            found = rows_of(connection, "owner_of", (execution_id,))
            if not found:
                raise ExecutionNotFound(
                    f"no execution {execution_id} in {self._writer.folder}; see `noetl list`"
                )
            owner, *known = found[0]
            if owner == self.me:
                return False
            if owner is not None and _alive(known):
                raise HomeInUse(
                    f"execution {execution_id} is run by process {known[0]}; wait for it, or "
                    f"stop it with `noetl cancel {execution_id}`"
                )
            write(connection, "claim_execution", (self.me, execution_id))
            return owner is not None

        return await self._writer.transact(claim)

    async def owned(self) -> list[str]:
        return [row[0] for row in await self._reader.rows("owned_executions", (self.me,))]

    async def release(self, execution_id: str) -> None:
        row = (execution_id, self.me)
        await self._writer.transact(lambda home: write(home, "release_execution", row))

    async def holder(self, execution_id: str) -> str | None:
        found = await self._live_owner(execution_id)
        return None if found is None else str(found[1])

    async def owner_of(self, execution_id: str) -> str | None:
        found = await self._live_owner(execution_id)
        return None if found is None else found[0]

    async def adopt(self, limit: int) -> Adoption:
        if not await self._reader.look(lambda home: _orphans(home, 1)):
            return Adoption(term=0, execution_ids=[])

        def adopt(connection: apsw.Connection) -> Adoption:
            orphans = _orphans(connection, limit)
            for name in orphans:
                write(connection, "claim_execution", (self.me, name))
            term = _draw(connection) if orphans else 0
            return Adoption(term=term, execution_ids=orphans)

        return await self._writer.transact(adopt)

    async def term(self) -> int:
        return await self._writer.transact(_draw)

    async def leave(self) -> None:
        row = (self.me,)
        await self._writer.transact(lambda home: write(home, "leave_executions", row))

    async def _live_owner(self, execution_id: str) -> tuple[str, int] | None:
        for owner, *known in await self._reader.rows("owner_of", (execution_id,)):
            if owner is not None and _alive(known):
                return owner, known[0]
        return None


def _orphans(connection: apsw.Connection, limit: int) -> list[str]:
    """The oldest executions that nobody goes on with."""
    found = rows_of(connection, "free_executions", (limit,))
    for owner, *known in rows_of(connection, "owners"):
        if not _alive(known):
            found += rows_of(connection, "left_executions", (owner, limit))
    return [execution_id for _, execution_id in sorted(found)[:limit]]


def _alive(known: list[Any]) -> bool:
    """Whether the process of these columns lives; it may never have been entered."""
    return known[0] is not None and Process(*known).alive()


def _draw(connection: apsw.Connection) -> int:
    return int(rows_of(connection, "draw_term")[0][0])


def register(connection: apsw.Connection, me: str) -> None:
    """
    Enter this process, and strike out the dead that own nothing.

    Part of the first transaction that it writes, so that it costs no commit of its own and a
    process that only reads leaves no trace.
    """
    for token, *known in rows_of(connection, "idle_processes"):
        if not Process(*known).alive():
            write(connection, "forget_process", (token,))
    write(connection, "register_process", (me, *Process.this()))
