"""The lines that tasks printed."""

from collections.abc import Sequence

from noetl.adapters.lines import shortened
from noetl.adapters.sqlite.reader import SqliteReader
from noetl.adapters.sqlite.writer import SqliteWriter
from noetl.ports.event_log import PrintedLine

FIELDS = PrintedLine.__struct_fields__


class SqlitePrinted:
    """Printed; see its contract. Lines of the last moments before a crash may be lost."""

    def __init__(self, writer: SqliteWriter, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    def keep(self, line: PrintedLine) -> None:
        self._writer.keep(shortened(line))

    async def flush(self) -> None:
        """Write the lines that wait for a commit."""
        await self._writer.drain()

    async def read(
        self, execution_id: str, *, step: str | None = None, limit: int = 10_000
    ) -> Sequence[PrintedLine]:
        await self.flush()
        asked = {"execution_id": execution_id, "step": step, "limit": limit}
        rows = await self._reader.rows("read_printed", asked)
        return [PrintedLine(**dict(zip(FIELDS, row, strict=True))) for row in rows]
