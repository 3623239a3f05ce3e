"""Who is there, in the database."""

from collections.abc import Sequence

from msgspec.structs import astuple

from noetl.adapters.postgres.reader import PostgresReader
from noetl.ports.roster import ServerRow, WorkerRow


class PostgresRoster:
    """Roster; see its contract."""

    def __init__(self, reader: PostgresReader) -> None:
        self._reader = reader

    async def seen(self, row: WorkerRow) -> None:
        await self._reader.write("worker_seen", *astuple(row))

    async def gone(self, name: str) -> None:
        await self._reader.write("worker_gone", name)

    async def workers(self, *, since_ms: int | None = None) -> Sequence[WorkerRow]:
        return [WorkerRow(**row) for row in await self._reader.rows("workers", since_ms or 0)]

    async def server_seen(self, row: ServerRow) -> None:
        await self._reader.write("server_seen", *astuple(row))

    async def server_gone(self, name: str) -> None:
        await self._reader.write("server_gone", name)

    async def servers(self, *, since_ms: int | None = None) -> Sequence[ServerRow]:
        return [ServerRow(**row) for row in await self._reader.rows("servers", since_ms or 0)]
