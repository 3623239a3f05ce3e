"""COPY over the connection: the fastest way of many rows into PostgreSQL, or out of it."""

import asyncio
import base64
import binascii
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from psycopg import postgres

from noetl.tools.refusal import Refusal
from noetl.tools.sql.cargo import Cargo, FileCargo, RowsCargo
from noetl.tools.sql.connections import Connection
from noetl.tools.sql.loading import bindable, encoded

_NAME = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
_INTO = re.compile(
    rf"(?P<head>copy\s+(?P<table>{_NAME}(?:\s*\.\s*{_NAME})*))"
    r"\s*(?P<columns>\([^)]*\))?(?P<tail>\s*from\s+stdin\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_FORMAT = re.compile(
    r"\b(csv|binary|delimiters?|null|header|quote|escape|encoding)\b", re.IGNORECASE
)
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


async def run_copy(connection: Connection, statement: str, cargo: Cargo) -> int:
    """Load or write; how many rows it were. A fault on the way leaves nothing loaded."""
    if isinstance(cargo, FileCargo) and not re.search(r"\bstdin\b", statement, re.IGNORECASE):
        return await _copy_out(connection, statement, cargo.path)
    if isinstance(cargo, RowsCargo):
        return await _copy_rows(connection, statement, cargo)
    async with connection.cursor() as cursor:
        async with cursor.copy(statement.encode()) as copy:
            async for piece in cargo.pieces():
                await copy.write(piece)
                await asyncio.sleep(0)  # as below
        return max(cursor.rowcount, 0)


async def _copy_rows(connection: Connection, statement: str, cargo: RowsCargo) -> int:
    rows = cargo.rows()
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


async def _copy_out(connection: Connection, statement: str, path: Path) -> int:
    """The file gets its name when it is whole."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        async with connection.cursor() as cursor:
            with part.open("wb") as file:
                async with cursor.copy(statement.encode()) as copy:
                    async for piece in copy:
                        file.write(piece)
            part.replace(path)
            return max(cursor.rowcount, 0)
    except OSError as fault:
        raise Refusal("input", f"cannot write {path}: {fault.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


async def target_of(connection: Connection, statement: str, first: Any) -> CopyTarget:
    """Columns are those that the COPY names, else the keys of the first row."""
    found = _INTO.fullmatch(statement)
    if found is None:
        raise Refusal("input", "the COPY cannot be read; expected COPY table (a, b) FROM STDIN")
    if _FORMAT.search(found["tail"]):
        raise Refusal(
            "input",
            "a list of rows goes in COPY's own format; leave FORMAT and the like out of the "
            "statement, or give text or a 'file' in that format",
        )
    known = await _known_columns(connection, found["table"])
    if found["columns"]:
        columns = [plain_name(name) for name in re.findall(_NAME, found["columns"])]
    else:
        columns = [str(key) for key in first] if isinstance(first, dict) else list(known)
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    listed = f"{found['head']} ({names}){found['tail']}" if columns else statement
    return CopyTarget(
        listed, columns, [WRITERS.get(known.get(name, 0), _as_is) for name in columns]
    )


async def _known_columns(connection: Connection, table: str) -> dict[str, int]:
    cursor = await connection.execute(_COLUMNS, [table])
    return {str(name): int(kind) for name, kind in await cursor.fetchall()}


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
            raise Refusal(
                "input",
                f"row {number} has '{min(strange)}', which is none of the columns loaded: "
                f"{', '.join(columns)}",
            )
        return [row.get(name) for name in columns]
    if not isinstance(row, list):
        raise Refusal("input", f"row {number} is {row!r:.80}; expected a mapping or a list")
    if len(row) != len(columns):
        raise Refusal(
            "input", f"row {number} has {len(row)} values for the {len(columns)} columns loaded"
        )
    return row


def _as_is(value: Any) -> Any:
    return bindable(value, as_json=False)


def _from_base64(value: Any) -> Any:
    """As `SELECT` shows bytes (OUT-3); PostgreSQL's own `\\x…` is taken too."""
    if not isinstance(value, str) or value.startswith("\\x"):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as fault:
        raise Refusal("input", f"a value for a bytea column is no base64 text: {fault}") from None


WRITERS: dict[int, Callable[[Any], Any]] = {
    postgres.types["json"].oid: encoded,
    postgres.types["jsonb"].oid: encoded,
    postgres.types["bytea"].oid: _from_base64,
}
"""Types whose values stand otherwise in JSON than PostgreSQL reads them."""
