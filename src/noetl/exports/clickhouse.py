"""Rows into a table of ClickHouse, over its plain HTTP interface (EVT-6)."""

import re

from noetl.errors import NoetlError
from noetl.exports.columns import COLUMNS
from noetl.exports.receiver import Receiver

TABLE = "noetl_events"
NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?", re.ASCII)
MOST_ROWS = 50_000
MOST_BYTES = 8 * 1_048_576
"""ClickHouse likes few and large inserts."""
LATER = ("started_at", "duration_ms")
"""Columns that the first tables did not have."""
SETTINGS = {"date_time_input_format": "best_effort"}
"""So that it reads RFC 3339."""


def checked(table: str) -> str:
    """The name of a table, or `database.table`; anything else could be SQL."""
    if NAME.fullmatch(table) is None:
        raise NoetlError(f"'{table}' is not a table name: expected TABLE or DATABASE.TABLE")
    return table


def creation(table: str) -> str:
    """
    The statement that makes the table.

    Rows with the same execution and seq replace each other, so that an event which was sent twice
    counts once (`select … from … final`).
    """
    columns = ", ".join(f"{name} {column.clickhouse}" for name, column in COLUMNS.items())
    return (
        f"create table if not exists {checked(table)} ({columns}) "
        "engine = ReplacingMergeTree order by (execution_id, seq)"
    )


async def create(receiver: Receiver, table: str) -> None:
    """Make the table; one of an earlier release gets the columns that it lacks."""
    await receiver.send(creation(table).encode())
    added = (f"add column if not exists {name} {COLUMNS[name].clickhouse}" for name in LATER)
    await receiver.send(f"alter table {checked(table)} {', '.join(added)}".encode())


async def insert(receiver: Receiver, table: str, rows: bytes) -> None:
    """Insert rows, one JSON object per line (see `row_of`)."""
    query = f"insert into {checked(table)} ({', '.join(COLUMNS)}) format JSONEachRow"
    await receiver.send(rows, {"query": query, **SETTINGS})
