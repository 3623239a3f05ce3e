"""Which process decides for which execution, and what processes tell each other, in memory."""

import asyncio
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from noetl.adapters.memory.tables import MemoryTables, find, unpark
from noetl.errors import HomeInUse
from noetl.ports.event_log import Adoption, ExecutionRow, Note


class MemoryInbox:
    """Inbox; see its contract."""

    def __init__(self, tables: MemoryTables, me: str) -> None:
        self._tables = tables
        self._me = me
        self._shown: set[int] = set()

    async def leave(self, execution_id: str, kind: str, fields: dict[str, Any]) -> None:
        find(self._tables, execution_id)
        number = next(self._tables.numbers)
        self._tables.notes[number] = Note(
            note_id=number, execution_id=execution_id, kind=kind, fields=dict(fields)
        )
        unpark(self._tables, execution_id)
        announced, self._tables.left = self._tables.left, asyncio.Event()
        announced.set()

    async def waiting(self) -> Sequence[Note]:
        notes = self._mine()
        self._shown = {note.note_id for note in notes}
        return notes

    async def discard(self, note_ids: Iterable[int]) -> None:
        for number in note_ids:
            self._tables.notes.pop(number, None)

    async def waits(self, timeout: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not self._news():
                    await self._tables.left.wait()
        return self._news()

    def _news(self) -> bool:
        return any(note.note_id not in self._shown for note in self._mine())

    def _mine(self) -> list[Note]:
        return [note for note in self._tables.notes.values() if self._owns(note.execution_id)]

    def _owns(self, execution_id: str) -> bool:
        row = self._tables.rows.get(execution_id)
        return row is not None and row.owner == self._me


class MemoryOwners:
    """Owners; see its contract. A process dies with `MemoryStorage.die`."""

    sure_until = math.inf
    lapses = 0

    def __init__(self, tables: MemoryTables, me: str) -> None:
        self._tables = tables
        self.me = me

    async def claim(self, execution_id: str) -> bool:
        row = find(self._tables, execution_id)
        if row.owner not in (None, self.me) and row.owner in self._tables.alive:
            raise HomeInUse(
                f"execution {execution_id} is run by process {row.owner}; wait for it, or stop it "
                f"with `noetl cancel {execution_id}`"
            )
        self._tables.rows[execution_id] = msgspec.structs.replace(
            row, owner=self.me, queued_at=None
        )
        return row.owner not in (None, self.me)

    async def owned(self) -> list[str]:
        rows = self._tables.rows.values()
        return [row.execution_id for row in rows if row.owner == self.me and not row.finished_at]

    async def release(self, execution_id: str) -> None:
        row = self._tables.rows.get(execution_id)
        if row is not None and row.owner == self.me:
            self._tables.rows[execution_id] = msgspec.structs.replace(row, owner=None)

    async def holder(self, execution_id: str) -> str | None:
        row = self._tables.rows.get(execution_id)
        return row.owner if row is not None and row.owner in self._tables.alive else None

    async def owner_of(self, execution_id: str) -> str | None:
        return await self.holder(execution_id)

    async def adopt(self, limit: int) -> Adoption:
        orphans = [row for row in self._tables.rows.values() if self._is_orphan(row)][:limit]
        for row in orphans:
            self._tables.rows[row.execution_id] = msgspec.structs.replace(row, owner=self.me)
        term = await self.term() if orphans else 0
        return Adoption(term=term, execution_ids=[row.execution_id for row in orphans])

    async def term(self) -> int:
        return next(self._tables.terms)

    async def leave(self) -> None:
        mine = [row for row in self._tables.rows.values() if row.owner == self.me]
        for row in mine:
            self._tables.rows[row.execution_id] = msgspec.structs.replace(row, owner=None)

    def _is_orphan(self, row: ExecutionRow) -> bool:
        parked = row.queued_at is not None
        return row.finished_at is None and not parked and row.owner not in self._tables.alive
