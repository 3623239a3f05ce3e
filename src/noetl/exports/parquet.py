"""The events as a Parquet file, written by DuckDB (EVT-6)."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

from noetl.errors import NoetlError
from noetl.exports.columns import COLUMNS
from noetl.exports.export import ExportBody
from noetl.exports.files import made_beside, pour, replacing, telling
from noetl.extras import is_installed, needs
from noetl.tools.sql.values import quoted

CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,  # with one thread the same events make the same file
    "memory_limit": "1GB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
LONGEST_ROW = 64 * 1024 * 1024
ROWS_PER_GROUP = 20_480
"""A group is held in memory until it is written."""
GLOB = re.compile(r"([*?\[])")
"""What DuckDB would take for a pattern in the name of a file."""


async def write_parquet(path: Path, rows: AsyncIterator[ExportBody]) -> None:
    """
    Write rows (see `row_of`) as Parquet.

    They pass through a file of lines beside it, because the columns are written group by group:
    memory stays bounded, whatever the length of the log.
    """
    if not is_installed("duckdb"):
        raise NoetlError(needs("Parquet", "duckdb"))
    with telling(path):
        if path.exists() and not path.is_file() and not path.is_dir():
            raise ValueError("Parquet needs an ordinary file")
    with replacing(path) as part, made_beside(part, ".rows") as staged:
        await pour(staged, rows)
        await asyncio.to_thread(_copy, staged, part)


def copying(rows: Path, file: Path) -> str:
    """The statement; made from the table of columns, so that the file cannot differ from it."""
    types = ", ".join(f"{name}: '{column.duckdb}'" for name, column in COLUMNS.items())
    shown = ", ".join("data::json as data" if name == "data" else name for name in COLUMNS)
    pattern = GLOB.sub(r"[\1]", str(rows))
    return (
        f"copy (select {shown} from read_json({quoted(pattern)}, format = 'newline_delimited', "
        f"columns = {{{types}}}, maximum_object_size = {LONGEST_ROW})) to {quoted(str(file))} "
        f"(format parquet, compression zstd, row_group_size {ROWS_PER_GROUP}, use_tmp_file false)"
    )


def _copy(staged: Path, part: Path) -> None:
    import duckdb

    try:
        with duckdb.connect(":memory:", config=CONFIG) as connection:
            connection.execute(copying(staged, part))
    except duckdb.Error as wrong:
        raise OSError(None, str(wrong)) from None
