"""The rows of executions: lists and pages without folding a log."""

from collections.abc import Sequence
from typing import Any

from noetl.adapters.sqlite.batch import COLUMNS
from noetl.adapters.sqlite.reader import Reader
from noetl.ports.event_log import ExecutionRow


class SqliteExecutions:
    """Executions; see its contract."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def find(self, execution_id: str) -> ExecutionRow | None:
        rows = await self._reader.rows("find_execution", (execution_id,))
        return _row(rows[0]) if rows else None

    async def page(
        self,
        *,
        status: str | None = None,
        path: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[ExecutionRow]:
        asked = {"status": status, "path": path, "before": before, "limit": limit}
        return [_row(row) for row in await self._reader.rows("page_executions", asked)]


def _row(columns: tuple[Any, ...]) -> ExecutionRow:
    return ExecutionRow(**dict(zip(COLUMNS, columns, strict=True)))
