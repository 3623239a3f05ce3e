"""The texts of playbooks, by digest."""

from noetl.adapters.sqlite.database import write
from noetl.adapters.sqlite.reader import SqliteReader
from noetl.adapters.sqlite.writer import SqliteWriter


class SqlitePlaybooks:
    """Playbooks; see its contract."""

    def __init__(self, writer: SqliteWriter, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def keep(self, digest: str, path: str, text: str, folder: str | None) -> None:
        row = (digest, path, text, folder)
        await self._writer.transact(lambda home: write(home, "keep_playbook", row))

    async def text(self, digest: str) -> tuple[str, str | None] | None:
        rows = await self._reader.rows("read_playbook", (digest,))
        return (rows[0][0], rows[0][1]) if rows else None
