"""One command on one connection to Snowflake, step by step, in a thread of its own."""

import io
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec

from noetl.tools.refusal import Refusal
from noetl.tools.sql.commands import Params, ThreadedWork, no_statement
from noetl.tools.sql.statements import statements_of
from noetl.tools.sql.values import distinct, json_text, plain

BATCH = 1000
_SEMISTRUCTURED = frozenset({5, 9, 10})
"""Type codes of VARIANT, OBJECT and ARRAY, which arrive as JSON text."""
_ASKS = frozenset(
    "select with show describe desc values call list ls explain copy".split()  # noqa: SIM905
)
"""First words of statements whose answer is rows and no report about rows."""
_SESSION = frozenset({"use", "set", "unset", "begin", "start"})
_MOVES = frozenset({"schema", "database", "temp", "temporary", "session"})
"""Creating or dropping these changes where the session stands, or what it alone sees."""


class SnowWork(ThreadedWork):
    """Runs the statements of a command, or one of them for each of many rows."""

    def __init__(self, connection: Any, text: str, params: Params) -> None:
        super().__init__(connection.cursor(), text, params)
        self._connection = connection

    @property
    def query_id(self) -> str | None:
        found = self._cursor.sfqid
        return None if found is None else str(found)

    def run(self) -> None:
        statements = split(self._text)
        if len(statements) > 1 and isinstance(self._params, list) and self._params:
            raise Refusal("input", "several statements need 'params' as a mapping, by name")
        for statement in statements:
            self._cursor.execute(statement, bindable(self._params) or None)
        self._look_at(statements[-1])

    def run_each(self, rows: Iterator[Any]) -> None:
        """The statement for every row, in batches and as one transaction."""
        statements = split(self._text)
        if len(statements) > 1:
            raise Refusal("input", "'rows' need one statement; put the others into own tasks")
        if self._params:
            raise Refusal("input", "'params' stand beside 'rows'; give one of them")
        self.rowcount = 0
        self._cursor.execute("BEGIN")
        try:
            while batch := [bindable(row) for row in islice(rows, BATCH)]:
                self._cursor.executemany(statements[0], batch)
                self.rowcount += max(self._cursor.rowcount or 0, 0)
        except BaseException:
            self._cursor.execute("ROLLBACK")
            raise
        self._cursor.execute("COMMIT")

    @property
    def leaves_traces(self) -> bool:
        """Changes the session beyond the call, so that the connection is not used again."""
        return any(
            one.first in _SESSION
            or (one.first in ("create", "drop", "undrop", "alter") and one.words & _MOVES)
            for one in statements_of(self._text)
        )

    def abort(self) -> None:
        """From another thread: let the server stop, then hang up."""
        with suppress(Exception):  # whatever it is, the connection is given up
            self._connection._cancel_query(self._text, self._cursor._request_id)
        with suppress(Exception):
            self._connection.close()

    def _look_at(self, last: str) -> None:
        columns = [(str(one.name), one.type_code) for one in self._cursor.description or ()]
        words = statements_of(last)
        if not words or words[0].first not in _ASKS:
            reports = any(name.lower().startswith("number of ") for name, _ in columns)
            self.rowcount = max(self._cursor.rowcount or 0, 0) if reports else 0
            return
        self.names = distinct(name for name, _ in columns)
        self._readers = [json_text if kind in _SEMISTRUCTURED else plain for _, kind in columns]


def split(text: str) -> list[str]:
    """The statements, as the connector tells them apart; it sends one at a time."""
    from snowflake.connector.util_text import split_statements

    found = [
        (statement, moves_file)
        for statement, moves_file in split_statements(io.StringIO(text), remove_comments=True)
        if statement and statements_of(statement)
    ]
    if not found:
        raise no_statement()
    if any(moves_file for _, moves_file in found):
        says = "PUT and GET move files of the worker, which is not allowed"
        raise Refusal("input", f"{says}; put the file by 's3' or 'gcs' and load it with COPY INTO")
    return [statement for statement, _ in found]


def bindable(values: Any) -> Any:
    """Parameters as the connector takes them: mappings go as JSON text."""
    if isinstance(values, dict):
        return {name: _bindable(value) for name, value in values.items()}
    if isinstance(values, list):
        return [_bindable(value) for value in values]
    raise Refusal("input", f"a row is {values!r:.80}; expected a mapping or a list")


def _bindable(value: Any) -> Any:
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else value
