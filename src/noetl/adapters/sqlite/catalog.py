"""Registered playbooks in the home's database."""

from collections.abc import Sequence
from functools import partial

import apsw

from noetl.adapters.registers import CatalogReads, columns_of, entry_of, texts_of
from noetl.adapters.sqlite.database import rows_of, write
from noetl.adapters.sqlite.reader import SqliteReader
from noetl.adapters.sqlite.writer import SqliteWriter
from noetl.ports.catalog import CatalogEntry, Registration


class SqliteCatalog(CatalogReads):
    """Catalog; see its contract."""

    def __init__(self, writer: SqliteWriter, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def register(self, asked: Registration) -> tuple[CatalogEntry, bool]:
        return await self._writer.transact(partial(_register, asked))

    async def find(self, path: str, version: int | None = None) -> CatalogEntry | None:
        if version is None:
            rows = await self._reader.rows("newest_playbook", (path,))
        else:
            rows = await self._reader.rows("find_playbook", (path, version))
        return entry_of(rows[0]) if rows else None

    async def page(self, *, after: str | None = None, limit: int = 50) -> Sequence[CatalogEntry]:
        asked = {"after": after or "", "limit": limit}
        return [entry_of(row) for row in await self._reader.rows("page_catalog", asked)]

    async def versions(
        self, path: str, *, before: int | None = None, limit: int = 50
    ) -> Sequence[CatalogEntry]:
        asked = {"path": path, "before": before, "limit": limit}
        return [entry_of(row) for row in await self._reader.rows("page_versions", asked)]

    async def _text(self, digest: str) -> str | None:
        rows = await self._reader.rows("read_playbook", (digest,))
        return str(rows[0][0]) if rows else None


def _register(asked: Registration, connection: apsw.Connection) -> tuple[CatalogEntry, bool]:
    found = [entry_of(row) for row in rows_of(connection, "newest_playbook", (asked.path,))]
    if found and found[0].digest == asked.digest:
        return found[0], False
    for digest, text in texts_of(asked):
        write(connection, "keep_text", (digest, asked.path, text))
    columns = columns_of(asked, found[0].version + 1 if found else 1)
    write(connection, "register_playbook", columns)
    return entry_of(columns), True
