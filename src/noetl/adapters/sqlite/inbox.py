"""Notes from one process to another that shares the home."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import msgspec

from noetl.adapters.sqlite.batch import drop_notes
from noetl.adapters.sqlite.database import rows_of, write
from noetl.adapters.sqlite.reader import SqliteReader
from noetl.adapters.sqlite.writer import SqliteWriter
from noetl.errors import ExecutionNotFound
from noetl.ports.event_log import Note

LOOK = 0.05
"""Seconds between two looks while waiting; a look at an idle home reads one number."""


class SqliteInbox:
    """Inbox; see its contract."""

    def __init__(self, writer: SqliteWriter, reader: SqliteReader, me: str) -> None:
        self._writer = writer
        self._reader = reader
        self._me = me
        self._seen: int | None = None
        self._found: list[tuple[Any, ...]] = []
        self._shown: set[int] = set()
        self._nothing_at: int | None = None
        """The version of the file in which the last look found nothing new."""

    async def leave(self, execution_id: str, kind: str, fields: dict[str, Any]) -> None:
        row = {
            "execution_id": execution_id,
            "kind": kind,
            "fields": msgspec.json.encode(fields).decode(),
        }

        def leave(connection: apsw.Connection) -> None:
            if write(connection, "leave_note", row) == 0:
                raise ExecutionNotFound(
                    f"no execution {execution_id} in {self._writer.folder}; see `noetl list`"
                )

        await self._writer.transact(leave)

    async def waiting(self) -> Sequence[Note]:
        rows = await self._reader.look(self._rows)
        self._shown = {row[0] for row in rows}
        return [
            Note(note_id=number, execution_id=name, kind=kind, fields=msgspec.json.decode(fields))
            for number, name, kind, fields in rows
        ]

    async def discard(self, note_ids: Iterable[int]) -> None:
        rows = [(number,) for number in note_ids]
        if rows:
            await self._writer.transact(lambda home: drop_notes(home, rows))

    async def waits(self, timeout: float) -> bool:
        until = asyncio.get_running_loop().time() + timeout
        while not await self._news():
            left = until - asyncio.get_running_loop().time()
            if left <= 0:
                return False
            await asyncio.sleep(min(LOOK, left))
        return True

    async def _news(self) -> bool:
        version = self._reader.version()
        if version is not None and version == self._nothing_at:
            return False
        rows = await self._reader.look(self._rows)
        news = any(row[0] not in self._shown for row in rows)
        self._nothing_at = None if news else version
        return news

    def _rows(self, connection: apsw.Connection) -> list[tuple[Any, ...]]:
        """The notes for this process, read again when the number of commits elsewhere has moved."""
        seen: int = rows_of(connection, "seen_changes")[0][0]
        if seen != self._seen:
            self._found = rows_of(connection, "waiting_notes", (self._me,))
            self._seen = seen
        return self._found
