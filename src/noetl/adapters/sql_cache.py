"""Kept outcomes on any SQL database (CACHE-1); the statements are each one's own."""

from collections.abc import Collection, Sequence

from msgspec.structs import astuple

from noetl.adapters.registers import now_ms
from noetl.adapters.sql import Statements, struct_of
from noetl.ports.cache import GRACE, CacheEntry, CacheFilter, CacheIdentity, user_of


class SqlCache:
    """CacheEntries; see its contract."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def find(self, identity: CacheIdentity, now: int) -> CacheEntry | None:
        found = await self._statements.one("find_kept", identity.entry_id, now)
        return None if found is None else struct_of(CacheEntry, found)

    async def keep(self, entry: CacheEntry, sources: Collection[str]) -> None:
        await self._refer(user_of(entry), sources)  # first: what an entry needs is never free
        await self._statements.write("keep_outcome", entry.identity.entry_id, *astuple(entry))

    async def use(self, execution_id: str, sources: Collection[str]) -> None:
        await self._refer(execution_id, sources)

    async def _refer(self, user: str, sources: Collection[str]) -> None:
        for source in sources:
            await self._statements.write("refer_to_bodies", user, source, now_ms())

    async def page(self, wanted: CacheFilter, *, now: int, limit: int = 50) -> Sequence[CacheEntry]:
        rows = await self._statements.rows("page_kept", *astuple(wanted), now, limit)
        return [struct_of(CacheEntry, (*row, b"")) for row in rows]

    async def clear(self, wanted: CacheFilter) -> int:
        return await self._statements.write("clear_kept", *astuple(wanted))

    async def expire(self, now: int) -> int:
        gone = await self._statements.write("expire_kept", now)
        await self._statements.write("free_bodies", now - GRACE)
        return gone

    async def needed(self) -> frozenset[str]:
        return frozenset(row[0] for row in await self._statements.rows("needed_bodies"))
