"""The rows of executions: lists and pages without folding a log."""

from collections.abc import Sequence

from noetl.adapters.postgres.reader import PostgresReader
from noetl.ports.event_log import ExecutionRow

ENDED = frozenset({"completed", "failed", "cancelled"})
"""Those whose number only grows: an estimate will do."""


class PostgresExecutions:
    """Executions; see its contract."""

    def __init__(self, reader: PostgresReader) -> None:
        self._reader = reader

    async def find(self, execution_id: str) -> ExecutionRow | None:
        found = await self._reader.one("find_execution", execution_id)
        return None if found is None else ExecutionRow(**found)

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
        asked = (status, path, parent, before, limit)
        if since is None and until is None:
            rows = await self._reader.rows("page_executions", *asked)
        else:
            rows = await self._reader.rows("page_executions_between", *asked, since, until)
        return [ExecutionRow(**row) for row in rows]

    async def children(self, execution_id: str) -> Sequence[ExecutionRow]:
        rows = await self._reader.rows("children", execution_id)
        return [ExecutionRow(**row) for row in rows]

    async def count(self, status: str) -> int:
        found = None
        if status in ENDED:
            found = await self._reader.one("estimate_executions", status)
        if found is None:
            found = await self._reader.one("count_executions", status)
        return int(found[0])
