"""Removed executions in memory (KEEP-1)."""

from collections.abc import Sequence

from noetl.adapters.memory.limits import drop_claims
from noetl.adapters.memory.tables import MemoryTables
from noetl.adapters.registers import now_ms
from noetl.ports.removals import EndedRoot


class MemoryRemovals:
    """Removals; see its contract."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    async def ended(
        self, before: int, *, since: int = 0, after: str = "", limit: int = 100
    ) -> Sequence[EndedRoot]:
        rows = self._tables.rows
        found = [
            EndedRoot(
                execution_id=row.execution_id,
                path=row.path,
                status=row.status,
                finished_at=row.finished_at,
                digest=row.digest,
            )
            for row in rows.values()
            if row.finished_at is not None
            and row.finished_at < before
            and (row.finished_at, row.execution_id) > (since, after)
            and row.parent_execution_id not in rows
        ]
        return sorted(found, key=lambda row: (row.finished_at, row.execution_id))[:limit]

    async def family(self, execution_id: str) -> list[str]:
        rows = self._tables.rows
        members = {execution_id} & rows.keys()
        grown = 0
        while grown < len(members):
            grown = len(members)
            members |= {n for n, row in rows.items() if row.parent_execution_id in members}
        needed = any(
            row.finished_at is None if name in members else row.origin_execution_id in members
            for name, row in rows.items()
        )
        return [] if needed else [name for name in rows if name in members]

    async def remove(self, execution_id: str) -> list[str]:
        tables, family = self._tables, await self.family(execution_id)
        for name in family:
            del tables.rows[name]
            tables.snapshots.pop(name, None)
            drop_claims(tables, name, "")
            tables.removed[name] = (now_ms(), True)
        gone = set(family)
        tables.notes = {
            n: note for n, note in tables.notes.items() if note.execution_id not in gone
        }
        return family

    async def left(self, before: int, *, limit: int = 100) -> list[str]:
        origins = {row.origin_execution_id for row in self._tables.rows.values()}
        origins |= {source for _, source in self._tables.body_uses}
        found = [
            (at, name)
            for name, (at, remaining) in self._tables.removed.items()
            if remaining and at < before and name not in origins
        ]
        return [name for _, name in sorted(found)][:limit]

    async def clear(self, execution_id: str, *, most: int = 1000) -> bool:
        tables = self._tables
        rows = tables.decisions.get(execution_id, [])
        lines = [line for line in tables.printed if line.execution_id == execution_id]
        gone = {id(line) for line in lines[:most]}
        tables.decisions[execution_id] = rows[most:]
        tables.printed = [line for line in tables.printed if id(line) not in gone]
        if max(len(rows), len(lines)) >= most:
            return False
        del tables.decisions[execution_id]
        if execution_id in tables.removed:
            tables.removed[execution_id] = (tables.removed[execution_id][0], False)
        return True

    async def is_removed(self, execution_id: str) -> bool:
        return execution_id in self._tables.removed

    async def forget(self, before: int) -> int:
        removed = self._tables.removed
        old = [name for name, (at, remaining) in removed.items() if at < before and not remaining]
        for name in old:
            del removed[name]
        return len(old)
