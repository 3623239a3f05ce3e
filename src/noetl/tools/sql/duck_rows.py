"""The rows of a task as a table of DuckDB: spooled to a file, read from there in parts."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from noetl.kinds.sql import DuckdbInputs
from noetl.messages.reference import Reference
from noetl.ports.result_store import ResultStore
from noetl.tools.refusal import Refusal
from noetl.tools.streams import json_in
from noetl.tools.tool import ToolCall

_NEVER = "'\x01%Y'"
_AS_IT_IS = (
    "format = 'array'",
    "sample_size = -1",  # every row has a say in what its column is
    "map_inference_threshold = -1",
    f"dateformat = {_NEVER}",  # text stays text; a cast, or the target's column, makes it a date
    f"timestampformat = {_NEVER}",
)


@asynccontextmanager
async def shown_rows(
    call: ToolCall[DuckdbInputs], results: ResultStore, folder: str | None
) -> AsyncIterator[str | None]:
    """
    The statement that makes the view `rows`. Its file lives as long as the `with`, in `folder` or
    in the system's place for such.
    """
    rows, columns = call.inputs.rows, call.inputs.columns
    if rows is None:
        if columns is not None:
            raise Refusal("input", "'columns' describes 'rows', which are missing")
        yield None
        return
    if not isinstance(rows, list | Reference):
        raise Refusal("input", "'rows' is not a list of mappings, which was expected")
    handle, path = tempfile.mkstemp(prefix="noetl-rows-", suffix=".json", dir=folder)
    os.close(handle)
    try:
        await _spool(call, results, path)
        yield view_of(path, columns)
    finally:
        os.unlink(path)


async def _spool(call: ToolCall[DuckdbInputs], results: ResultStore, path: str) -> None:
    try:
        with open(path, "wb") as file:
            async for piece in json_in(call.inputs.rows, results):
                await asyncio.to_thread(file.write, piece)
    except OSError as fault:
        says = f"cannot write the rows to {path}: {fault.strerror}"
        raise Refusal("internal", says, retryable=True) from None


def view_of(path: str, columns: Mapping[str, str] | None) -> str:
    """The statement after which `rows` is a table of this connection."""
    options = [*_AS_IT_IS[:1], f"columns = {{{_typed(columns)}}}"] if columns else _AS_IT_IS
    return (
        f"create or replace temp view rows as from read_json({_text(path)}, {', '.join(options)})"
    )


def _typed(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{_text(name)}: {_text(kind)}" for name, kind in columns.items())


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
