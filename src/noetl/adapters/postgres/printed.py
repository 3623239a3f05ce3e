"""The lines that tasks printed."""

from collections.abc import Sequence

from noetl.adapters.lines import shortened
from noetl.adapters.postgres.reader import PostgresReader
from noetl.adapters.postgres.writer import PostgresWriter
from noetl.ports.event_log import PrintedLine


class PostgresPrinted:
    """Printed; see its contract. Lines of the last moments before a crash may be lost."""

    def __init__(self, writer: PostgresWriter, reader: PostgresReader) -> None:
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
        rows = await self._reader.rows("read_printed", execution_id, step, limit)
        return [PrintedLine(**row) for row in rows]
