"""The statements of the .sql files, by name; those of a batch with as many rows as it needs."""

import os
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from noetl.late import late

FOLDER = Path(__file__).parent
ROWS = late(r"@rows\((\d+)\)")
SIZES = (1, 8, 64, 512)
"""How many rows a statement of a batch may have. Few sizes, so that each stays prepared."""


def load(text: str) -> dict[str, str]:
    """The statements of a file: each begins with `-- name: <name>`."""
    parts = [part.partition("\n") for part in f"\n{text}".split("\n-- name: ")[1:]]
    return {name: statement.strip() for name, _, statement in parts}


SQL = load((FOLDER / "statements.sql").read_text("utf-8")) | load(
    (FOLDER / "registers.sql").read_text("utf-8")
)
MIGRATIONS = [
    FOLDER / "migrations" / name
    for name in sorted(os.listdir(FOLDER / "migrations"))
    if name.endswith(".sql")
]
"""Files. The n-th leads from format n - 1 to format n; one that was released never changes."""


@cache
def of_size(name: str, size: int) -> tuple[str, int]:
    """A statement with `size` rows, and how many parameters each row has."""
    found = ROWS.search(SQL[name])
    if found is None:
        raise LookupError(f"the statement {name!r} takes no rows")
    width = int(found[1])
    row = f"({', '.join(repeat('?', width))})"
    return ROWS.sub(", ".join(repeat(row, size)), SQL[name]), width


def in_bulk(name: str, rows: list[tuple[Any, ...]]) -> list[tuple[str, list[Any]]]:
    """
    The statements that write all rows, with their parameters.

    One statement of 512 rows hands the interpreter lock over once, 512 statements do so 512 times:
    beside a busy event loop that is the difference between milliseconds and seconds.
    """
    if not rows:
        return []
    calls = []
    for start in range(0, len(rows), SIZES[-1]):
        part = rows[start : start + SIZES[-1]]
        size = next(size for size in SIZES if size >= len(part))
        text, width = of_size(name, size)
        parameters = list(chain.from_iterable(part))
        parameters.extend(repeat(None, (size - len(part)) * width))
        calls.append((text, parameters))
    return calls
