"""What a worker and a process of DuckDB say to each other."""

from typing import Any

import msgspec

from noetl.tools.sql.commands import Params

NAMES, ROWS, DONE, REFUSED, FAILED = b"N", b"R", b"D", b"I", b"E"
"""Tags of what a call is answered: names of columns, rows of them, its end, or why it has none."""
CONFINED, FREE = b"1", b"0"
MEMORY = ":memory:"


class DuckRequest(msgspec.Struct, frozen=True):
    """One call: which database, and what to do there."""

    path: str
    root: str | None
    """Below it the database itself refuses every other file, for as long as it lives."""
    spool: str
    """A folder for what it writes on the way."""
    settings: dict[str, Any]
    text: str
    params: Params
    view: str | None
    """The statement that makes the table `rows` of the call."""


class DuckFault(msgspec.Struct, frozen=True):
    """What DuckDB refused, in its own words."""

    exception: str
    message: str
