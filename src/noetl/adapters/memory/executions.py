"""The rows of executions in memory."""

from collections.abc import Sequence

import msgspec

from noetl.adapters.memory.tables import MemoryTables
from noetl.ports.event_log import ExecutionRow


class MemoryExecutions:
    """Executions; see its contract."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    async def find(self, execution_id: str) -> ExecutionRow | None:
        row = self._tables.rows.get(execution_id)
        return None if row is None else msgspec.structs.replace(row)

    async def page(
        self,
        *,
        status: str | None = None,
        path: str | None = None,
        parent: str | None = None,
        since: int | None = None,
        until: int | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[ExecutionRow]:
        rows = list(reversed(self._tables.rows.values()))
        if since is not None or until is not None:
            rows.sort(key=lambda row: -row.started_at)  # stable: of the same time the last first
        if before is not None:
            names = [row.execution_id for row in rows]
            rows = rows[names.index(before) + 1 :] if before in names else []
        return [
            msgspec.structs.replace(row)
            for row in rows
            if status in (None, row.status)
            and path in (None, row.path)
            and parent in (None, row.parent_execution_id)
            and (since is None or row.started_at >= since)
            and (until is None or row.started_at < until)
        ][:limit]

    async def asking(self, *, before: str | None = None, limit: int = 50) -> Sequence[ExecutionRow]:
        rows = await self.page(before=before, limit=len(self._tables.rows))
        return [row for row in rows if row.asks is not None][:limit]

    async def children(self, execution_id: str) -> Sequence[ExecutionRow]:
        return [
            msgspec.structs.replace(row)
            for row in self._tables.rows.values()
            if row.parent_execution_id == execution_id
        ]

    async def starting(self, prefix: str, *, limit: int = 50) -> Sequence[ExecutionRow]:
        return [
            msgspec.structs.replace(row)
            for row in reversed(self._tables.rows.values())
            if row.execution_id.startswith(prefix)
        ][:limit]

    async def unfinished(self, execution_ids: Sequence[str]) -> Sequence[str]:
        found = {name: self._tables.rows.get(name) for name in execution_ids}
        return [name for name, row in found.items() if row is not None and not row.finished_at]

    async def count(self, status: str) -> int:
        return sum(row.status == status for row in self._tables.rows.values())
