"""The log on SQLite: decisions in, rows out."""

from collections.abc import Sequence

from noetl.adapters.sqlite.reader import SqliteReader
from noetl.adapters.sqlite.writer import SqliteWriter
from noetl.ports.commit import Commit
from noetl.ports.event_log import Decision, LogRow, Snapshot


class SqliteEventLog:
    """EventLog; see its contract."""

    def __init__(self, writer: SqliteWriter, reader: SqliteReader) -> None:
        self._reader = reader
        self._writer = writer

    def append(self, decision: Decision, *, alone: bool = False) -> Commit:
        return self._writer.append(decision, alone=alone)

    async def read(
        self, execution_id: str, *, after: int = 0, limit: int = 1000
    ) -> Sequence[LogRow]:
        asked = {"execution_id": execution_id, "after": after, "limit": limit}
        rows = await self._reader.rows("read_decisions", asked)
        return [LogRow(*row) for row in rows]

    async def snapshot(self, execution_id: str) -> Snapshot | None:
        rows = await self._reader.rows("read_snapshot", (execution_id,))
        return Snapshot(*rows[0]) if rows else None

    def forget(self, execution_id: str) -> None:
        self._writer.forget(execution_id)
