"""The envelope as a row of a table: which columns there are, and their types (EVT-1, EVT-6)."""

from typing import Any, NamedTuple

from noetl.messages.codec import encode_shown
from noetl.messages.envelope import timestamp
from noetl.messages.times import Interval


class Column(NamedTuple):
    """The type of one field of the envelope, in each language."""

    duckdb: str
    clickhouse: str


_TEXT = Column("VARCHAR", "String")
_WORD = Column("VARCHAR", "LowCardinality(String)")
_MAYBE = Column("VARCHAR", "Nullable(String)")

COLUMNS: dict[str, Column] = {
    "event_id": _TEXT,
    "seq": Column("BIGINT", "UInt64"),
    "execution_id": _TEXT,
    "timestamp": Column("TIMESTAMPTZ", "DateTime64(3, 'UTC')"),
    "source": _WORD,
    "name": _WORD,
    "entity": _WORD,
    "entity_id": _TEXT,
    "status": _WORD,
    "step": Column("VARCHAR", "LowCardinality(Nullable(String))"),
    "step_run_id": _MAYBE,
    "task_run_id": _MAYBE,
    "trace_id": _TEXT,
    "parent_id": _MAYBE,
    "data": Column("VARCHAR", "String"),
    "started_at": Column("TIMESTAMPTZ", "Nullable(DateTime64(3, 'UTC'))"),
    "duration_ms": Column("BIGINT", "Nullable(Int64)"),
}
"""
`data` is JSON text: its fields depend on the name of the event. `started_at` and `duration_ms`
are those of the task, iteration or step run that the event ends, by the clock of its worker.
"""


def row_of(event: dict[str, Any], took: Interval | None = None) -> bytes:
    """One row as JSON, with `data` as text, so that no reader rounds a number in it."""
    row = {**event, "data": encode_shown(event["data"]).decode()}
    if took is not None:
        row |= {"started_at": timestamp(took[0]), "duration_ms": took[1] - took[0]}
    return encode_shown(row)
