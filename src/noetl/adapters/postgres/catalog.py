"""Registered playbooks in the database."""

import secrets
from collections.abc import Sequence

from noetl.adapters.postgres.reader import PostgresReader
from noetl.adapters.registers import CatalogReads, columns_of, entry_of
from noetl.ports.catalog import CatalogEntry, Registration


class PostgresCatalog(CatalogReads):
    """Catalog; see its contract."""

    def __init__(self, reader: PostgresReader) -> None:
        self._reader = reader

    async def register(self, asked: Registration) -> tuple[CatalogEntry, bool]:
        path, _, *columns = columns_of(asked, 0)
        row = (path, *columns, asked.text, asked.original, secrets.token_hex(16))
        while (found := await self._reader.one("register_playbook", *row)) is None:
            pass  # another was first with this version; the next is free
        *entry, fresh = found
        return entry_of(tuple(entry)), fresh

    async def find(self, path: str, version: int | None = None) -> CatalogEntry | None:
        if version is None:
            found = await self._reader.one("newest_playbook", path)
        else:
            found = await self._reader.one("find_playbook", path, version)
        return None if found is None else entry_of(tuple(found))

    async def page(self, *, after: str | None = None, limit: int = 50) -> Sequence[CatalogEntry]:
        rows = await self._reader.rows("page_catalog", after or "", limit)
        return [entry_of(tuple(row)) for row in rows]

    async def versions(
        self, path: str, *, before: int | None = None, limit: int = 50
    ) -> Sequence[CatalogEntry]:
        rows = await self._reader.rows("page_versions", path, before, limit)
        return [entry_of(tuple(row)) for row in rows]

    async def _text(self, digest: str) -> str | None:
        found = await self._reader.one("read_playbook", digest)
        return None if found is None else str(found["text"])
