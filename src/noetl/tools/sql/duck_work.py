"""One command on one DuckDB connection, step by step, in a thread of its own."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import duckdb

from noetl.tools.refusal import Refusal
from noetl.tools.sql.commands import Params, ThreadedWork, no_statement
from noetl.tools.sql.values import distinct, json_text, plain

_COUNTS = {("Count", "BIGINT"), ("Success", "BOOLEAN")}
"""How DuckDB answers a statement that has no rows to show."""
_UNREADABLE = ("TIME ZONE", "INTERVAL")
"""Types that the driver returns inexactly, or only with another package: read as text."""


class DuckWork(ThreadedWork):
    """Runs the statements of a command, after the one that makes the view of its rows."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, text: str, params: Params, view: str | None
    ) -> None:
        super().__init__(connection, text, params)
        self._view = view

    def run(self) -> None:
        statements = self._cursor.extract_statements(self._text)
        if not statements:
            raise no_statement()
        shares = dealt(statements, self._params)
        if self._view is not None:
            self._cursor.execute(self._view)
        for statement, share in zip(statements, shares, strict=True):
            self._cursor.execute(statement, share)
        self._look_at(statements[-1], shares[-1])

    def _look_at(self, last: duckdb.Statement, share: Params) -> None:
        columns = [(str(name), str(kind)) for name, kind, *_ in self._cursor.description or ()]
        if last.type != duckdb.StatementType.SELECT and (not columns or columns[0] in _COUNTS):
            counted = self._cursor.fetchall() if columns else []
            self.rowcount = sum(row[0] for row in counted if type(row[0]) is int)
            return
        self.names = distinct(name for name, _ in columns)
        kinds = [kind for _, kind in columns]
        hidden = [any(part in kind for part in _UNREADABLE) for kind in kinds]
        if last.type == duckdb.StatementType.SELECT and any(hidden):
            self._cursor.execute(spelled_out(last.query, hidden), share)
        else:
            hidden = [False] * len(kinds)
        self._readers = [
            _spelled(kind) if spelled else json_text if kind == "JSON" else plain
            for kind, spelled in zip(kinds, hidden, strict=True)
        ]


def spelled_out(query: str, hidden: Sequence[bool]) -> str:
    """The same rows, with the columns that the driver cannot read exactly as JSON text."""
    names = [f"c{number}" for number in range(len(hidden))]
    shown = [
        f"to_json({name})::varchar" if spell else name
        for name, spell in zip(names, hidden, strict=True)
    ]
    source = query.strip().rstrip(";")
    return f"select {', '.join(shown)} from (\n{source}\n) _ ({', '.join(names)})"


def dealt(statements: Sequence[duckdb.Statement], params: Params) -> list[Params]:
    """Each statement's own parameters: by name, or as many of the list as it has places for."""
    if len(statements) == 1:
        return [params]
    if isinstance(params, dict):
        return [
            {name: value for name, value in params.items() if name in statement.named_parameters}
            for statement in statements
        ]
    shares, rest = [], list(params)
    for statement in statements:
        places = len(statement.named_parameters)
        shares.append(rest[:places])
        rest = rest[places:]
    if rest:
        says = f"'params' has {len(rest)} more values than the statements have places"
        raise Refusal("input", says)
    return list(shares)


def _spelled(kind: str) -> Callable[[Any], Any]:
    return _moment if kind == "TIMESTAMP WITH TIME ZONE" else json_text


def _moment(value: Any) -> Any:
    text = json_text(value)
    try:
        return text and datetime.fromisoformat(text).isoformat()
    except ValueError:  # infinity, or a year that Python's calendar does not know
        return text
