"""
The log and what every run needs beside it, on any SQL database: what is asked is the same, the SQL
is each one's own. The registers, which most runs do not ask, are in `sql_registers`.

A statement is called by the name that it has in the .sql files of its adapter, with its parameters
in order. What takes a transaction, or is written otherwise, stands with the adapter.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from noetl.adapters.batching import BatchWriter
from noetl.ports.event_log import ExecutionRow, LogRow, PrintedLine, Snapshot

S = TypeVar("S", bound=msgspec.Struct)

LONGEST_LINE = 65_536
"""Characters of a printed line that are kept."""


class Statements(Protocol):
    """The statements of one database, by name."""

    async def rows(self, statement: str, *given: Any) -> list[Any]:
        """All rows, each with its columns in order."""

    async def one(self, statement: str, *given: Any) -> Any:
        """The first row, or None."""

    async def write(self, statement: str, *given: Any) -> int:
        """How many rows it touched."""


def struct_of(kind: type[S], columns: Any) -> S:
    """A row as the struct whose fields its columns are, in order."""
    return kind(**dict(zip(kind.__struct_fields__, columns, strict=True)))


class SqlEventLog:
    """EventLog; see its contract."""

    def __init__(self, writer: BatchWriter, statements: Statements) -> None:
        self._statements = statements
        self.append = writer.append
        self.forget = writer.forget

    async def read(
        self, execution_id: str, *, after: int = 0, limit: int = 1000
    ) -> Sequence[LogRow]:
        rows = await self._statements.rows("read_decisions", execution_id, after, limit)
        return [
            LogRow(first, last, at, events if type(events) is bytes else events.encode())
            for first, last, at, events in rows
        ]

    async def snapshot(self, execution_id: str) -> Snapshot | None:
        found = await self._statements.one("read_snapshot", execution_id)
        return None if found is None else Snapshot(*found)


class SqlExecutions:
    """Executions; see its contract. Pages and counts depend on what the database can do."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def find(self, execution_id: str) -> ExecutionRow | None:
        found = await self._statements.one("find_execution", execution_id)
        return None if found is None else struct_of(ExecutionRow, found)

    async def asking(self, *, before: str | None = None, limit: int = 50) -> Sequence[ExecutionRow]:
        return await self._all("asking_executions", before, limit)

    async def children(self, execution_id: str) -> Sequence[ExecutionRow]:
        return await self._all("children", execution_id)

    async def starting(self, prefix: str, *, limit: int = 50) -> Sequence[ExecutionRow]:
        return await self._all("executions_starting", prefix, f"{prefix}\U0010ffff", limit)

    async def unfinished(self, execution_ids: Sequence[str]) -> Sequence[str]:
        named = msgspec.json.encode(execution_ids).decode()
        return [row[0] for row in await self._statements.rows("unfinished", named)]

    async def _all(self, statement: str, *given: Any) -> list[ExecutionRow]:
        rows = await self._statements.rows(statement, *given)
        return [struct_of(ExecutionRow, row) for row in rows]


class SqlPlaybooks:
    """Playbooks; see its contract."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def keep(self, digest: str, path: str, text: str, folder: str | None) -> None:
        await self._statements.write("keep_playbook", digest, path, text, folder)

    async def text(self, digest: str) -> tuple[str, str | None] | None:
        found = await self._statements.one("read_playbook", digest)
        return None if found is None else (found[0], found[1])


class SqlPrinted:
    """Printed; see its contract. Lines of the last moments before a crash may be lost."""

    def __init__(self, writer: BatchWriter, statements: Statements) -> None:
        self._writer = writer
        self._statements = statements

    def keep(self, line: PrintedLine) -> None:
        self._writer.keep(shortened(line))

    async def flush(self) -> None:
        """Write the lines that wait for a commit."""
        await self._writer.drain()

    async def read(
        self, execution_id: str, *, step: str | None = None, skip: int = 0, limit: int = 10_000
    ) -> Sequence[PrintedLine]:
        await self.flush()
        rows = await self._statements.rows("read_printed", execution_id, step, limit, skip)
        return [struct_of(PrintedLine, row) for row in rows]


def shortened(line: PrintedLine) -> PrintedLine:
    """The line with no more text than is kept; its end says how much is missing."""
    missing = len(line.text) - LONGEST_LINE
    if missing <= 0:
        return line
    text = f"{line.text[:LONGEST_LINE]}… ({missing} more characters)"
    return msgspec.structs.replace(line, text=text)
