"""Kept outcomes in memory (CACHE-1)."""

from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from noetl.adapters.memory.tables import MemoryTables
from noetl.adapters.registers import now_ms
from noetl.ports.cache import GRACE, CacheEntry, CacheFilter, CacheIdentity, user_of


class MemoryCache:
    """CacheEntries; see its contract."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    async def find(self, identity: CacheIdentity, now: int) -> CacheEntry | None:
        found = self._tables.kept.get(identity)
        return found if found is not None and found.expires_at > now else None

    async def keep(self, entry: CacheEntry, sources: Collection[str]) -> None:
        await self.use(user_of(entry), sources)
        self._tables.kept[entry.identity] = entry

    async def use(self, execution_id: str, sources: Collection[str]) -> None:
        for source in sources:
            self._tables.body_uses[execution_id, source] = now_ms()

    async def page(self, wanted: CacheFilter, *, now: int, limit: int = 50) -> Sequence[CacheEntry]:
        rows = [one for one in self._wanted(wanted) if one.expires_at > now]
        rows.sort(key=lambda one: one.kept_at, reverse=True)
        return [replace(one, outcome=b"") for one in rows[:limit]]

    async def clear(self, wanted: CacheFilter) -> int:
        return self._drop(list(self._wanted(wanted)))

    async def expire(self, now: int) -> int:
        kept, uses = self._tables.kept, self._tables.body_uses
        gone = self._drop([one for one in kept.values() if one.expires_at <= now])
        users = {user_of(one) for one in kept.values()} | self._tables.rows.keys()
        self._tables.body_uses = {
            use: since for use, since in uses.items() if use[0] in users or since > now - GRACE
        }
        return gone

    async def needed(self) -> frozenset[str]:
        return frozenset(source for _, source in self._tables.body_uses)

    def _wanted(self, wanted: CacheFilter) -> Iterator[CacheEntry]:
        for one in self._tables.kept.values():
            fields = ((wanted.path, one.path), (wanted.task, one.task), (wanted.key, one.key))
            if all(asked in (None, found) for asked, found in fields):
                yield one

    def _drop(self, entries: list[CacheEntry]) -> int:
        for entry in entries:
            del self._tables.kept[entry.identity]
        return len(entries)
