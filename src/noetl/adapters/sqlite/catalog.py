"""Registered playbooks in the home's database."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import apsw

from noetl.adapters.registers import Registration, entry_of, registration
from noetl.adapters.sqlite.database import rows_of, write
from noetl.adapters.sqlite.reader import SqliteReader
from noetl.adapters.sqlite.writer import SqliteWriter
from noetl.ports.catalog import CatalogEntry, parts_of


class SqliteCatalog:
    """Catalog; see its contract."""

    def __init__(self, writer: SqliteWriter, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def register(
        self,
        path: str,
        text: str,
        *,
        digest: str,
        name: str,
        description: str | None = None,
        labels: Mapping[str, Any] | None = None,
        original: str | None = None,
    ) -> tuple[CatalogEntry, bool]:
        asked = registration(
            path,
            text,
            digest=digest,
            name=name,
            description=description,
            labels=labels,
            original=original,
        )
        return await self._writer.transact(partial(_register, asked))

    async def find(self, path: str, version: int | None = None) -> CatalogEntry | None:
        if version is None:
            rows = await self._reader.rows("newest_playbook", (path,))
        else:
            rows = await self._reader.rows("find_playbook", (path, version))
        return entry_of(rows[0]) if rows else None

    async def by_id(self, playbook_id: str) -> CatalogEntry | None:
        parts = parts_of(playbook_id)
        return None if parts is None else await self.find(*parts)

    async def page(self, *, after: str | None = None, limit: int = 50) -> Sequence[CatalogEntry]:
        asked = {"after": after or "", "limit": limit}
        return [entry_of(row) for row in await self._reader.rows("page_catalog", asked)]

    async def versions(
        self, path: str, *, before: int | None = None, limit: int = 50
    ) -> Sequence[CatalogEntry]:
        asked = {"path": path, "before": before, "limit": limit}
        return [entry_of(row) for row in await self._reader.rows("page_versions", asked)]

    async def original(self, playbook_id: str) -> str | None:
        entry = await self.by_id(playbook_id)
        if entry is None or entry.original_digest is None:
            return None
        rows = await self._reader.rows("read_playbook", (entry.original_digest,))
        return str(rows[0][0]) if rows else None


def _register(asked: Registration, connection: apsw.Connection) -> tuple[CatalogEntry, bool]:
    found = [entry_of(row) for row in rows_of(connection, "newest_playbook", (asked.path,))]
    if found and found[0].digest == asked.digest:
        return found[0], False
    for digest, text in asked.texts:
        write(connection, "keep_text", (digest, asked.path, text))
    columns = asked.columns(found[0].version + 1 if found else 1)
    write(connection, "register_playbook", columns)
    return entry_of(columns), True
