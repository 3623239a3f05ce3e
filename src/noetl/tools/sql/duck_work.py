"""One command on one DuckDB connection, step by step, in a thread of its own."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import duckdb

from noetl.tools.refusal import Refusal
from noetl.tools.sql.values import distinct, json_text, plain

_CHUNK = 1000
_COUNTS = {("Count", "BIGINT"), ("Success", "BOOLEAN")}
"""How DuckDB answers a statement that has no rows to show."""
_UNREADABLE = ("TIME ZONE", "INTERVAL")
"""Types that the driver returns inexactly, or only with another package: read as text."""

Params = list[Any] | dict[str, Any]


class DuckWork:
    """Runs the statements of a command and reads the rows of the last."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        text: str,
        params: Params,
        view: str | None,
    ) -> None:
        self.connection = connection
        self.rowcount: int | None = None
        self.names: list[str] = []
        self._text = text
        self._params = params
        self._view = view
        self._readers: list[Callable[[Any], Any]] = []

    def run(self) -> None:
        """Afterwards either `rowcount` is set, or `names` and what `more` returns."""
        statements = self.connection.extract_statements(self._text)
        if not statements:
            raise Refusal(
                "input", "the command holds no statement; give SQL in 'command' or 'query'"
            )
        shares = dealt(statements, self._params)
        if self._view is not None:
            self.connection.execute(self._view)
        for statement, share in zip(statements, shares, strict=True):
            self.connection.execute(statement, share)
        self._look_at(statements[-1], shares[-1])

    def more(self) -> list[list[Any]]:
        """The next rows; none at the end."""
        return [
            [read(value) for read, value in zip(self._readers, row, strict=True)]
            for row in self.connection.fetchmany(_CHUNK)
        ]

    def _look_at(self, last: duckdb.Statement, share: Params) -> None:
        columns = [(str(name), str(kind)) for name, kind, *_ in self.connection.description or ()]
        if last.type != duckdb.StatementType.SELECT and (not columns or columns[0] in _COUNTS):
            counted = self.connection.fetchall() if columns else []
            self.rowcount = sum(row[0] for row in counted if type(row[0]) is int)
            return
        self.names = distinct(name for name, _ in columns)
        kinds = [kind for _, kind in columns]
        hidden = [any(part in kind for part in _UNREADABLE) for kind in kinds]
        if last.type == duckdb.StatementType.SELECT and any(hidden):
            self.connection.execute(spelled_out(last.query, hidden), share)
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
        raise Refusal(
            "input", f"'params' has {len(rest)} more values than the statements have places"
        )
    return list(shares)


def _spelled(kind: str) -> Callable[[Any], Any]:
    return _moment if kind == "TIMESTAMP WITH TIME ZONE" else json_text


def _moment(value: Any) -> Any:
    text = json_text(value)
    try:
        return text and datetime.fromisoformat(text).isoformat()
    except ValueError:  # infinity, or a year that Python's calendar does not know
        return text
