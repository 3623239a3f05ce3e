"""COPY over the connection: the fastest way of many rows into PostgreSQL, or out of it."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from psycopg import postgres

from noetl.kinds.sql import PostgresInputs
from noetl.ports.result_store import ResultStore
from noetl.tools.paths import open_file, whole_file
from noetl.tools.refusal import Refusal, base64_bytes
from noetl.tools.sql.connections import Connection
from noetl.tools.sql.loading import bindable, encoded
from noetl.tools.sql.statements import Statement
from noetl.tools.streams import elements_of, text_in
from noetl.tools.tool import ToolCall

_NAME = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
_INTO = re.compile(
    rf"(?P<head>copy\s+(?P<table>{_NAME}(?:\s*\.\s*{_NAME})*))"
    r"\s*(?P<columns>\([^)]*\))?(?P<tail>\s*from\s+stdin\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_FORMAT = re.compile(
    r"\b(csv|binary|delimiters?|null|header|quote|escape|encoding)\b", re.IGNORECASE
)
_PIECE = 262_144
_TURN = 100
"""Rows after which others on the event loop have their turn."""
_COLUMNS = """
select attname, atttypid from pg_attribute
where attrelid = to_regclass(%s) and attnum > 0 and not attisdropped and attgenerated = ''
order by attnum
"""
"""Names and types; anybody may read them, also who may only write to the table."""


class CopyTarget(NamedTuple):
    """Where rows go: the statement, its columns in order, and how each value is written."""

    statement: str
    columns: list[str]
    writers: list[Callable[[Any], Any]]


Copy = Callable[[Connection, str], Awaitable[int]]
"""Runs a COPY statement; how many rows it were. A fault on the way leaves nothing loaded."""


def copy_of(
    call: ToolCall[PostgresInputs], statements: tuple[Statement, ...], results: ResultStore
) -> Copy | None:
    """What the last statement does with rows or a file; None where it is no COPY to or from us."""
    inputs, last = call.inputs, statements[-1]
    if any(statement.copies_to_client for statement in statements[:-1]):
        raise Refusal("input", "a COPY over the connection is not the last statement; move it")
    if inputs.rows is not None and inputs.file is not None:
        raise Refusal("input", "'rows' and 'file' are both set; give only one of them")
    if not last.copies_to_client:
        if inputs.rows is None and inputs.file is None:
            return None
        raise Refusal("input", "'rows' and 'file' need a last statement like COPY t FROM STDIN")
    if inputs.params and len(statements) == 1:
        raise Refusal("input", "COPY has no places for 'params'; leave them out")
    if inputs.file is not None:
        path = call.path(inputs.file)
        inward = "stdin" in last.words
        return partial(_copy_in, _read(path)) if inward else partial(_copy_out, path)
    if "stdout" in last.words:
        raise Refusal("input", "COPY to STDOUT needs 'file', where it writes; or use SELECT")
    if inputs.rows is None:
        raise Refusal("input", "COPY from STDIN needs 'rows' or 'file', which it loads")
    text = text_in(inputs.rows, results)
    if text is not None:  # in the format that the COPY names
        return partial(_copy_in, (part.encode() async for part in text))
    return partial(_copy_rows, elements_of(inputs.rows, results, "rows"))


async def _read(path: Path) -> AsyncIterator[bytes]:
    try:
        with open_file(path) as file:
            while piece := await asyncio.to_thread(file.read, _PIECE):
                yield piece
    except OSError as fault:
        raise Refusal("not_found", f"cannot read {path}: {fault.strerror}") from None


async def _copy_in(pieces: AsyncIterator[bytes], connection: Connection, statement: str) -> int:
    async with connection.cursor() as cursor:
        async with cursor.copy(statement.encode()) as copy:
            async for piece in pieces:
                await copy.write(piece)
                await asyncio.sleep(0)  # as below
        return max(cursor.rowcount, 0)


async def _copy_rows(rows: AsyncIterator[Any], connection: Connection, statement: str) -> int:
    """Mappings by column name, or lists in the order of the columns."""
    row = await anext(rows, None)
    if row is None:
        return 0
    target, number = await target_of(connection, statement, row), 1
    async with connection.cursor() as cursor:
        async with cursor.copy(target.statement.encode()) as copy:
            await copy.write_row(written(row, target, number))
            async for row in rows:
                number += 1
                await copy.write_row(written(row, target, number))
                if number % _TURN == 0:  # a server that keeps up never makes the driver wait
                    await asyncio.sleep(0)
        return max(cursor.rowcount, 0)


async def _copy_out(path: Path, connection: Connection, statement: str) -> int:
    async with connection.cursor() as cursor:
        with whole_file(path) as file:
            async with cursor.copy(statement.encode()) as copy:
                async for piece in copy:
                    file.write(piece)
        return max(cursor.rowcount, 0)


async def target_of(connection: Connection, statement: str, first: Any) -> CopyTarget:
    """Columns are those that the COPY names, else the keys of the first row."""
    found = _INTO.fullmatch(statement)
    if found is None:
        raise Refusal("input", "the COPY cannot be read; expected COPY table (a, b) FROM STDIN")
    if _FORMAT.search(found["tail"]):
        says = "a list of rows goes in COPY's own format; leave FORMAT and other options out of the"
        raise Refusal("input", f"{says} statement, or give text or a 'file' in that format")
    cursor = await connection.execute(_COLUMNS, [found["table"]])
    known = {str(name): int(kind) for name, kind in await cursor.fetchall()}
    if found["columns"]:
        columns = [plain_name(name) for name in re.findall(_NAME, found["columns"])]
    else:
        columns = [str(key) for key in first] if isinstance(first, dict) else list(known)
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    listed = f"{found['head']} ({names}){found['tail']}" if columns else statement
    return CopyTarget(
        listed, columns, [WRITERS.get(known.get(name, 0), _as_is) for name in columns]
    )


def plain_name(name: str) -> str:
    """A column as the catalog has it."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def written(row: Any, target: CopyTarget, number: int) -> Sequence[Any]:
    """The row in the order of the columns; says which row does not fit."""
    values = ordered(row, target.columns, number)
    return [
        None if value is None else write(value)
        for write, value in zip(target.writers, values, strict=True)
    ]


def ordered(row: Any, columns: list[str], number: int) -> Sequence[Any]:
    if isinstance(row, Mapping):
        strange = row.keys() - set(columns)
        if strange:
            says = f"row {number} has '{min(strange)}', which is none of the columns loaded"
            raise Refusal("input", f"{says}: {', '.join(columns)}")
        return [row.get(name) for name in columns]
    if not isinstance(row, list):
        raise Refusal("input", f"row {number} is {row!r:.80}; expected a mapping or a list")
    if len(row) != len(columns):
        says = f"row {number} has {len(row)} values for the {len(columns)} columns loaded"
        raise Refusal("input", says)
    return row


_as_is = partial(bindable, as_json=False)


def _from_base64(value: Any) -> Any:
    """As `SELECT` shows bytes (OUT-3); PostgreSQL's own `\\x…` is taken too."""
    if not isinstance(value, str) or value.startswith("\\x"):
        return value
    return base64_bytes(value, "a value for a bytea column")


WRITERS: dict[int, Callable[[Any], Any]] = {
    postgres.types["json"].oid: encoded,
    postgres.types["jsonb"].oid: encoded,
    postgres.types["bytea"].oid: _from_base64,
}
"""Types whose values stand otherwise in JSON than PostgreSQL reads them."""
