"""The lines that tasks printed."""

from collections.abc import Sequence

import msgspec

from noetl.adapters.sqlite.reader import Reader
from noetl.adapters.sqlite.writer import Writer
from noetl.ports.event_log import PrintedLine

LONGEST_LINE = 65_536
FIELDS = PrintedLine.__struct_fields__


def shortened(line: PrintedLine) -> PrintedLine:
    """The line with no more text than is kept; the end says how much is missing."""
    missing = len(line.text) - LONGEST_LINE
    if missing <= 0:
        return line
    text = f"{line.text[:LONGEST_LINE]}… ({missing} more characters)"
    return msgspec.structs.replace(line, text=text)


class SqlitePrinted:
    """Printed; see its contract. Lines of the last moments before a crash may be lost."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    def keep(self, line: PrintedLine) -> None:
        self._writer.keep(shortened(line))

    async def flush(self) -> None:
        """Write the lines that wait for a commit."""
        await self._writer.flush()

    async def read(
        self, execution_id: str, *, step: str | None = None, limit: int = 10_000
    ) -> Sequence[PrintedLine]:
        await self.flush()
        asked = {"execution_id": execution_id, "step": step, "limit": limit}
        rows = await self._reader.rows("read_printed", asked)
        return [PrintedLine(**dict(zip(FIELDS, row, strict=True))) for row in rows]
