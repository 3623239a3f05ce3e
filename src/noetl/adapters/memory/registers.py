"""The catalog, keys, tokens and the roster in memory."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from noetl.adapters.memory.tables import MemoryTables
from noetl.adapters.registers import (
    CatalogReads,
    check_added,
    columns_of,
    entry_of,
    now_ms,
    texts_of,
)
from noetl.ports.catalog import CatalogEntry, Registration
from noetl.ports.keys import KeyHolder
from noetl.ports.roster import ServerRow, WorkerRow
from noetl.ports.tokens import TokenRow, is_good, maker_of

Row = TypeVar("Row", WorkerRow, ServerRow)


class MemoryCatalog(CatalogReads):
    """Catalog; see its contract."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    async def register(self, asked: Registration) -> tuple[CatalogEntry, bool]:
        newest = await self.find(asked.path)
        if newest is not None and newest.digest == asked.digest:
            return newest, False
        for known, each in texts_of(asked):
            self._tables.playbooks.setdefault(known, (each, None))
        kept = self._tables.catalog.setdefault(asked.path, [])
        kept.append(entry_of(columns_of(asked, len(kept) + 1)))
        return kept[-1], True

    async def find(self, path: str, version: int | None = None) -> CatalogEntry | None:
        kept = [entry for entry in self._live(path) if version in (None, entry.version)]
        return kept[-1] if kept else None

    async def labelled(self, path: str, label: str) -> Sequence[CatalogEntry]:
        return [entry for entry in self._live(path)[::-1] if entry.version_label == label]

    async def page(self, *, after: str | None = None, limit: int = 50) -> Sequence[CatalogEntry]:
        paths = sorted(path for path in self._tables.catalog if path > (after or ""))
        return [kept[-1] for path in paths if (kept := self._live(path))][:limit]

    async def versions(
        self, path: str, *, before: int | None = None, limit: int = 50
    ) -> Sequence[CatalogEntry]:
        kept = self._live(path)[::-1]
        return [entry for entry in kept if before is None or entry.version < before][:limit]

    async def remove(self, path: str, version: int) -> None:
        self._tables.unlisted.add((path, version))

    def _live(self, path: str) -> list[CatalogEntry]:
        kept = self._tables.catalog.get(path, [])
        return [entry for entry in kept if (path, entry.version) not in self._tables.unlisted]

    async def _text(self, digest: str) -> str | None:
        return self._tables.playbooks[digest][0]


class MemoryKeys:
    """Keys; see its contract."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    async def claim(self, key: str, fingerprint: str, execution_id: str) -> KeyHolder:
        given = (execution_id, fingerprint, now_ms())
        holder, known, _ = self._tables.keys.setdefault(key, given)
        return KeyHolder(execution_id=holder, fingerprint=known, fresh=holder == execution_id)

    async def find(self, key: str) -> str | None:
        return self._tables.keys[key][0] if key in self._tables.keys else None

    async def prune(self, before_ms: int) -> int:
        keys = self._tables.keys
        old = [key for key, (_, _, claimed_at) in keys.items() if claimed_at < before_ms]
        for key in old:
            del keys[key]
        return len(old)


class MemoryTokens:
    """Tokens; see its contract."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    async def add(self, row: TokenRow) -> None:
        taken = {kept.digest for kept in self._tables.tokens.values()}
        if row.token_id in self._tables.tokens or row.digest in taken:
            check_added(row, await self.find(row.digest))
        else:
            self._tables.tokens[row.token_id] = row

    async def find(self, digest: str) -> TokenRow | None:
        kept = self._tables.tokens.values()
        return next((row for row in kept if row.digest == digest), None)

    async def all(self) -> Sequence[TokenRow]:
        return sorted(self._tables.tokens.values(), key=lambda row: (row.created_at, row.token_id))

    async def revoke(self, token_id: str) -> bool:
        row = self._tables.tokens.get(token_id)
        if row is None:
            return False
        if row.revoked_at is None:
            self._tables.tokens[token_id] = msgspec.structs.replace(row, revoked_at=now_ms())
        return True

    async def forget_sessions(self, now_ms: int) -> int:
        kept = self._tables.tokens
        sessions = [row for row in kept.values() if maker_of(row) is not None]
        ended = [row for row in sessions if not is_good(row, row.digest, now_ms)]
        for row in ended:
            del kept[row.token_id]
        return len(ended)


class MemoryRoster:
    """Roster; see its contract."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    async def seen(self, row: WorkerRow) -> None:
        self._tables.workers[row.name] = row

    async def gone(self, name: str) -> None:
        self._tables.workers.pop(name, None)

    async def workers(self, *, since_ms: int | None = None) -> Sequence[WorkerRow]:
        return _since(self._tables.workers, since_ms)

    async def server_seen(self, row: ServerRow) -> None:
        self._tables.servers[row.name] = row

    async def server_gone(self, name: str) -> None:
        self._tables.servers.pop(name, None)

    async def servers(self, *, since_ms: int | None = None) -> Sequence[ServerRow]:
        return _since(self._tables.servers, since_ms)


def _since(rows: dict[str, Row], since_ms: int | None) -> list[Row]:
    return [rows[name] for name in sorted(rows) if rows[name].seen_at >= (since_ms or 0)]
