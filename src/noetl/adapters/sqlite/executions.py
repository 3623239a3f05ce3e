"""Statements on SQLite, and the executions of a home."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from noetl.adapters.sql import SqlExecutions, struct_of
from noetl.adapters.sqlite.database import write
from noetl.adapters.sqlite.reader import SqliteReader
from noetl.adapters.sqlite.statements import SQL
from noetl.adapters.sqlite.writer import SqliteWriter
from noetl.ports.event_log import ExecutionRow

LEADS = ("parent", "path", "status")
"""The filters with an index, the one that leaves least first."""


class SqliteStatements:
    """See `adapters.sql.Statements`."""

    def __init__(self, writer: SqliteWriter, reader: SqliteReader, me: str) -> None:
        self.writer = writer
        self.reader = reader
        self.me = me

    async def rows(self, statement: str, *given: Any) -> list[Any]:
        return await self.reader.rows(statement, given)

    async def one(self, statement: str, *given: Any) -> Any:
        return next(iter(await self.reader.rows(statement, given)), None)

    async def write(self, statement: str, *given: Any) -> int:
        return await self.writer.transact(lambda home: write(home, statement, given))


class SqliteExecutions(SqlExecutions):
    """Executions; see its contract."""

    def __init__(self, statements: SqliteStatements) -> None:
        super().__init__(statements)
        self._reader = statements.reader

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
        return [struct_of(ExecutionRow, row) for row in rows]

    async def count(self, status: str) -> int:
        return int((await self._statements.one("count_executions", status))[0])


@cache
def page_led_by(lead: str) -> str:
    """The statement for a page that walks the index of this filter."""
    return SQL["page_executions"].replace("@lead", SQL[f"lead_{lead}"])
