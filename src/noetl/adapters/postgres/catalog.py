"""Registered playbooks in the database."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from noetl.adapters.postgres.reader import PostgresReader
from noetl.adapters.registers import entry_of, registration
from noetl.ports.catalog import CatalogEntry, parts_of


class PostgresCatalog:
    """Catalog; see its contract."""

    def __init__(self, reader: PostgresReader) -> None:
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
        _, _, *columns = asked.columns(0)
        row = (path, *columns, text, original, secrets.token_hex(16))
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

    async def by_id(self, playbook_id: str) -> CatalogEntry | None:
        parts = parts_of(playbook_id)
        return None if parts is None else await self.find(*parts)

    async def page(self, *, after: str | None = None, limit: int = 50) -> Sequence[CatalogEntry]:
        rows = await self._reader.rows("page_catalog", after or "", limit)
        return [entry_of(tuple(row)) for row in rows]

    async def versions(
        self, path: str, *, before: int | None = None, limit: int = 50
    ) -> Sequence[CatalogEntry]:
        rows = await self._reader.rows("page_versions", path, before, limit)
        return [entry_of(tuple(row)) for row in rows]

    async def original(self, playbook_id: str) -> str | None:
        entry = await self.by_id(playbook_id)
        if entry is None or entry.original_digest is None:
            return None
        found = await self._reader.one("read_playbook", entry.original_digest)
        return None if found is None else str(found["text"])
