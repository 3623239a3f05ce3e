"""Notes from one process to another that shares the database."""

import secrets
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from noetl.adapters.postgres.listener import NoteListener
from noetl.adapters.postgres.reader import PostgresReader
from noetl.adapters.postgres.writer import PostgresWriter
from noetl.errors import ExecutionNotFound
from noetl.ports.event_log import Note


class PostgresInbox:
    """Inbox; see its contract."""

    def __init__(self, writer: PostgresWriter, reader: PostgresReader, me: str) -> None:
        self._writer = writer
        self._reader = reader
        self._me = me
        self.listener = NoteListener(reader.door, me)

    async def leave(self, execution_id: str, kind: str, fields: dict[str, Any]) -> None:
        await self._writer.drain()
        mark, text = secrets.token_hex(16), msgspec.json.encode(fields).decode()
        if await self._reader.one("leave_note", execution_id, kind, text, mark) is None:
            place = self._reader.door.place
            raise ExecutionNotFound(f"no execution {execution_id} in {place}; see `noetl list`")

    async def waiting(self) -> Sequence[Note]:
        notes = await self._reader.rows("waiting_notes", self._me)
        return [
            Note(note_id=number, execution_id=name, kind=kind, fields=msgspec.json.decode(fields))
            for number, name, kind, fields in notes
        ]

    async def discard(self, note_ids: Iterable[int]) -> None:
        await self._reader.write("drop_notes", list(note_ids))

    async def waits(self, timeout: float) -> bool:
        return await self.listener.wait(timeout)
