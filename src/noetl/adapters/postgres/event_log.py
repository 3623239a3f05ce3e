"""The log on PostgreSQL: decisions in, rows out."""

from collections.abc import Sequence

from noetl.adapters.postgres.reader import PostgresReader
from noetl.adapters.postgres.writer import PostgresWriter
from noetl.ports.commit import Commit
from noetl.ports.event_log import Decision, LogRow, Snapshot


class PostgresEventLog:
    """EventLog; see its contract. Appends wait for a server that is away, as long as is set."""

    def __init__(self, writer: PostgresWriter, reader: PostgresReader) -> None:
        self._writer = writer
        self._reader = reader

    def append(self, decision: Decision, *, alone: bool = False) -> Commit:  # noqa: ARG002
        return self._writer.append(decision)

    async def read(
        self, execution_id: str, *, after: int = 0, limit: int = 1000
    ) -> Sequence[LogRow]:
        rows = await self._reader.rows("read_decisions", execution_id, after, limit)
        return [LogRow(first, last, at, events.encode()) for first, last, at, events in rows]

    async def snapshot(self, execution_id: str) -> Snapshot | None:
        found = await self._reader.one("read_snapshot", execution_id)
        return None if found is None else Snapshot(*found)

    def forget(self, execution_id: str) -> None:
        self._writer.forget(execution_id)
