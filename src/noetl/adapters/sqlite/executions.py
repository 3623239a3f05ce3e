"""The rows of executions: lists and pages without folding a log."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from noetl.adapters.sqlite.batch import COLUMNS
from noetl.adapters.sqlite.database import rows_of
from noetl.adapters.sqlite.reader import SqliteReader
from noetl.adapters.sqlite.statements import SQL
from noetl.ports.event_log import ExecutionRow

LEADS = ("parent", "path", "status")
"""The filters with an index, the one that leaves least first."""


class SqliteExecutions:
    """Executions; see its contract."""

    def __init__(self, reader: SqliteReader) -> None:
        self._reader = reader

    async def find(self, execution_id: str) -> ExecutionRow | None:
        rows = await self._reader.rows("find_execution", (execution_id,))
        return _row(rows[0]) if rows else None

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
        asked: dict[str, Any] = {"status": status, "path": path, "parent": parent}
        lead = next((name for name in LEADS if asked[name] is not None), "none")
        asked |= {"before": before, "limit": limit}
        statement = page_led_by(lead)
        if since is not None or until is not None:
            asked |= {"since": since, "until": until}
            statement = SQL["page_executions_between"]
        rows = await self._reader.look(lambda home: home.execute(statement, asked).fetchall())
        return [_row(row) for row in rows]

    async def children(self, execution_id: str) -> Sequence[ExecutionRow]:
        return [_row(row) for row in await self._reader.rows("children", (execution_id,))]

    async def count(self, status: str) -> int:
        def count(home: Any) -> int:
            return int(rows_of(home, "count_executions", (status,))[0][0])

        return await self._reader.look(count)


@cache
def page_led_by(lead: str) -> str:
    """The statement for a page that walks the index of this filter."""
    return SQL["page_executions"].replace("@lead", SQL[f"lead_{lead}"])


def _row(columns: tuple[Any, ...]) -> ExecutionRow:
    return ExecutionRow(**dict(zip(COLUMNS, columns, strict=True)))
