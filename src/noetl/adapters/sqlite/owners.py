"""Which process decides for which execution."""

import apsw

from noetl.adapters.processes import Process
from noetl.adapters.sqlite.database import rows_of, write
from noetl.adapters.sqlite.reader import Reader
from noetl.adapters.sqlite.writer import Writer
from noetl.errors import ExecutionNotFound, HomeInUse


class SqliteOwners:
    """Owners; see its contract."""

    def __init__(self, writer: Writer, reader: Reader, me: str) -> None:
        self._writer = writer
        self._reader = reader
        self._me = me

    @property
    def me(self) -> str:
        return self._me

    async def claim(self, execution_id: str) -> None:
        def claim(connection: apsw.Connection) -> None:
            found = rows_of(connection, "owner_of", (execution_id,))
            if not found:
                raise ExecutionNotFound(
                    f"no execution {execution_id} in {self._writer.folder}; see `noetl list`"
                )
            owner, pid, ticks, boot = found[0]
            if owner == self._me:
                return
            if owner is not None and pid is not None and Process(pid, ticks, boot).alive():
                raise HomeInUse(
                    f"execution {execution_id} is run by process {pid}; wait for it, or stop it "
                    f"with `noetl cancel {execution_id}`"
                )
            write(connection, "claim_execution", (self._me, execution_id))

        await self._writer.transact(claim)

    async def release(self, execution_id: str) -> None:
        row = (execution_id, self._me)
        await self._writer.transact(lambda home: write(home, "release_execution", row))

    async def holder(self, execution_id: str) -> str | None:
        for owner, pid, ticks, boot in await self._reader.rows("owner_of", (execution_id,)):
            if owner is not None and pid is not None and Process(pid, ticks, boot).alive():
                return str(pid)
        return None


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
