"""The rows of executions: lists and pages without folding a log."""

from collections.abc import Sequence

from noetl.adapters.postgres.reader import Reader
from noetl.ports.event_log import ExecutionRow


class PostgresExecutions:
    """Executions; see its contract."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def find(self, execution_id: str) -> ExecutionRow | None:
        found = await self._reader.one("find_execution", execution_id)
        return None if found is None else ExecutionRow(**found)

    async def page(
        self,
        *,
        status: str | None = None,
        path: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[ExecutionRow]:
        rows = await self._reader.rows("page_executions", status, path, before, limit)
        return [ExecutionRow(**row) for row in rows]
