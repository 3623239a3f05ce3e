"""Who is there, in the home's database."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import astuple

from noetl.adapters.sqlite.database import write
from noetl.adapters.sqlite.reader import SqliteReader
from noetl.adapters.sqlite.writer import SqliteWriter
from noetl.ports.roster import ServerRow, WorkerRow

WORKER, SERVER = WorkerRow.__struct_fields__, ServerRow.__struct_fields__


class SqliteRoster:
    """Roster; see its contract."""

    def __init__(self, writer: SqliteWriter, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def seen(self, row: WorkerRow) -> None:
        await self._write("worker_seen", astuple(row))

    async def gone(self, name: str) -> None:
        await self._write("worker_gone", (name,))

    async def workers(self, *, since_ms: int | None = None) -> Sequence[WorkerRow]:
        rows = await self._reader.rows("workers", (since_ms or 0,))
        return [WorkerRow(**dict(zip(WORKER, row, strict=True))) for row in rows]

    async def server_seen(self, row: ServerRow) -> None:
        await self._write("server_seen", astuple(row))

    async def server_gone(self, name: str) -> None:
        await self._write("server_gone", (name,))

    async def servers(self, *, since_ms: int | None = None) -> Sequence[ServerRow]:
        rows = await self._reader.rows("servers", (since_ms or 0,))
        return [ServerRow(**dict(zip(SERVER, row, strict=True))) for row in rows]

    async def _write(self, statement: str, row: tuple[Any, ...]) -> None:
        await self._writer.transact(lambda home: write(home, statement, row))
