"""Notes from one process to another that shares the home."""

import asyncio
from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from noetl.adapters.sqlite.database import rows_of, write
from noetl.adapters.sqlite.reader import Reader
from noetl.adapters.sqlite.writer import Writer
from noetl.errors import ExecutionNotFound
from noetl.ports.event_log import Note

LOOK = 0.05
"""Seconds between two looks while waiting; a look at an idle home reads one number."""


class SqliteInbox:
    """Inbox; see its contract."""

    def __init__(self, writer: Writer, reader: Reader, me: str) -> None:
        self._writer = writer
        self._reader = reader
        self._me = me
        self._seen: int | None = None

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

    async def collect(self) -> Sequence[Note]:
        if not await self._reader.look(self._anything):
            return []
        rows = await self._writer.transact(lambda home: rows_of(home, "collect_notes", (self._me,)))
        return [
            Note(note_id=number, execution_id=name, kind=kind, fields=msgspec.json.decode(fields))
            for number, name, kind, fields in sorted(rows)
        ]

    async def waits(self, timeout: float) -> bool:
        until = asyncio.get_running_loop().time() + timeout
        while not await self._reader.look(self._anything):
            left = until - asyncio.get_running_loop().time()
            if left <= 0:
                return False
            await asyncio.sleep(min(LOOK, left))
        return True

    def _anything(self, connection: apsw.Connection) -> bool:
        """Whether a note waits for this process; the number moves with every commit elsewhere."""
        seen: int = rows_of(connection, "seen_changes")[0][0]
        if seen == self._seen:
            return False
        found = rows_of(connection, "any_note", (self._me,))
        self._seen = None if found else seen
        return bool(found)
