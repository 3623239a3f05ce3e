"""How triggers stand, in memory."""

from collections.abc import Sequence

from msgspec.structs import replace

from noetl.adapters.memory.tables import MemoryTables
from noetl.ports.triggers import WATCH, EndedExecution, Noted, TriggerRow


class MemoryTriggers:
    """Triggers; see its contract."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    async def put(self, row: TriggerRow) -> None:
        self._tables.triggers[row.path] = row
        self._tables.taken.pop(row.path, None)

    async def find(self, path: str) -> TriggerRow | None:
        return self._tables.triggers.get(path)

    async def page(
        self, *, kind: str | None = None, after: str | None = None, limit: int = 50
    ) -> Sequence[TriggerRow]:
        rows = self._tables.triggers
        paths = sorted(path for path in rows if path > (after or "") and path != WATCH)
        return [rows[path] for path in paths if kind in (None, rows[path].kind)][:limit]

    async def take(self, now: int, until: int, limit: int) -> Sequence[TriggerRow]:
        taken = self._tables.taken
        due = [
            row
            for row in self._tables.triggers.values()
            if row.due_at is not None
            and row.due_at <= now
            and not row.paused
            and taken.get(row.path, 0) <= now
        ]
        due.sort(key=lambda row: row.due_at or 0)
        taken.update((row.path, until) for row in due[:limit])
        return due[:limit]

    async def settle(self, taken: TriggerRow, made: TriggerRow) -> bool:
        kept = self._tables.triggers.get(taken.path)
        known = (taken.version, taken.since, taken.planned_at, False)
        if kept is None or (kept.version, kept.since, kept.planned_at, kept.paused) != known:
            return False
        self._tables.triggers[taken.path] = made
        self._tables.taken.pop(taken.path, None)
        return True

    async def note(self, path: str, noted: Noted) -> None:
        row = self._tables.triggers.get(path)
        if row is not None and noted.execution_id is not None:
            row = replace(row, last_at=noted.at, last_execution_id=noted.execution_id)
        if row is not None and noted.why is not None:
            row = replace(row, skipped_at=noted.at, skipped_why=noted.why)
        if row is not None:
            self._tables.triggers[path] = row

    async def remove(self, path: str) -> bool:
        self._tables.taken.pop(path, None)
        return self._tables.triggers.pop(path, None) is not None

    async def ended(
        self, since: int, *, after: str = "", limit: int = 100
    ) -> Sequence[EndedExecution]:
        rows = [
            EndedExecution(
                execution_id=row.execution_id,
                path=row.path,
                status=row.status,
                finished_at=row.finished_at,
            )
            for row in self._tables.rows.values()
            if row.finished_at is not None and (row.finished_at, row.execution_id) > (since, after)
        ]
        return sorted(rows, key=lambda row: (row.finished_at, row.execution_id))[:limit]
