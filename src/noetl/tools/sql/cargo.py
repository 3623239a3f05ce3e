"""What goes over the connection with a COPY: the rows of a task, or a file (TOOL-0)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from noetl.kinds.sql import PostgresInputs
from noetl.ports.result_store import ResultStore
from noetl.tools.refusal import Refusal
from noetl.tools.sql.statements import Statement
from noetl.tools.streams import elements_of, text_in
from noetl.tools.tool import ToolCall

_PIECE = 262_144


class FileCargo(msgspec.Struct, frozen=True):
    """A file in the format that the COPY names, read or written as it is."""

    path: Path

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            with self.path.open("rb") as file:
                while piece := await asyncio.to_thread(file.read, _PIECE):
                    yield piece
        except OSError as fault:
            raise Refusal("not_found", f"cannot read {self.path}: {fault.strerror}") from None


class TextCargo(msgspec.Struct, frozen=True):
    """Text in the format that the COPY names."""

    value: Any
    results: ResultStore

    async def pieces(self) -> AsyncIterator[bytes]:
        if (text := text_in(self.value, self.results)) is not None:
            async for part in text:
                yield part.encode()


class RowsCargo(msgspec.Struct, frozen=True):
    """Mappings by column name, or lists in the order of the columns."""

    value: Any
    results: ResultStore

    def rows(self) -> AsyncIterator[Any]:
        return elements_of(self.value, self.results, "rows")


Cargo = FileCargo | TextCargo | RowsCargo


def cargo_of(
    call: ToolCall[PostgresInputs], statements: tuple[Statement, ...], results: ResultStore
) -> Cargo | None:
    """What the last statement carries; None where it is no COPY over the connection."""
    inputs, last = call.inputs, statements[-1]
    if any(statement.copies_to_client for statement in statements[:-1]):
        raise Refusal("input", "a COPY over the connection is not the last statement; move it")
    if inputs.rows is not None and inputs.file is not None:
        raise Refusal("input", "'rows' stands beside 'file'; give one of them")
    if not last.copies_to_client:
        if inputs.rows is None and inputs.file is None:
            return None
        raise Refusal("input", "'rows' and 'file' need a last statement like COPY t FROM STDIN")
    if inputs.params and len(statements) == 1:
        raise Refusal("input", "COPY has no places for 'params'; leave them out")
    if inputs.file is not None:
        return FileCargo(call.path(inputs.file))
    if "stdout" in last.words:
        raise Refusal("input", "COPY to STDOUT needs 'file', where it writes; or use SELECT")
    if inputs.rows is None:
        raise Refusal("input", "COPY from STDIN needs 'rows' or 'file', which it loads")
    if text_in(inputs.rows, results) is not None:
        return TextCargo(inputs.rows, results)
    return RowsCargo(inputs.rows, results)
