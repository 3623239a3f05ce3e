"""The neighbours of the log on PostgreSQL: what is its own way of keeping them (`adapters.sql`)."""

import secrets
from collections.abc import Callable, Sequence
from typing import get_args

import asyncpg
from msgspec.structs import astuple

from noetl.adapters.postgres.reader import PostgresReader
from noetl.adapters.postgres.statements import SQL
from noetl.adapters.registers import columns_of, entry_of, now_ms
from noetl.adapters.sql import SqlExecutions, struct_of
from noetl.adapters.sql_registers import (
    SqlCatalog,
    SqlCredentials,
    SqlRemovals,
    SqlTriggers,
    trigger_of,
)
from noetl.messages.events import End
from noetl.ports.catalog import CatalogEntry, Registration
from noetl.ports.credentials import SealedCredential
from noetl.ports.event_log import ExecutionRow
from noetl.ports.keys import KeyHolder
from noetl.ports.triggers import TriggerRow

ENDED = frozenset(get_args(End))
"""Those whose number only grows: an estimate will do."""


class PostgresExecutions(SqlExecutions):
    """Executions; see its contract."""

    async def page(
        self,
        *,
        status: str | None = None,
        path: str | None = None,
        parent: str | None = None,
        since: int | None = None,
        until: int | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[ExecutionRow]:
        asked = (status, path, parent, before, limit)
        if since is None and until is None:
            return await self._all("page_executions", *asked)
        return await self._all("page_executions_between", *asked, since, until)

    async def count(self, status: str) -> int:
        found = None
        if status in ENDED:
            found = await self._statements.one("estimate_executions", status)
        if found is None:
            found = await self._statements.one("count_executions", status)
        return int(found[0])


class PostgresCatalog(SqlCatalog):
    """Catalog; see its contract."""

    async def register(self, asked: Registration) -> tuple[CatalogEntry, bool]:
        path, _, *columns = columns_of(asked, 0)
        row = (path, *columns, asked.text, asked.original, secrets.token_hex(16))
        while (found := await self._statements.one("register_playbook", *row)) is None:
            pass  # another was first with this version; the next is free
        *entry, fresh = found
        return entry_of(tuple(entry)), fresh


class PostgresKeys:
    """Keys; see its contract."""

    def __init__(self, reader: PostgresReader) -> None:
        self._reader = reader

    async def claim(self, key: str, fingerprint: str, execution_id: str) -> KeyHolder:
        row = (key, fingerprint, execution_id, now_ms())
        while (found := await self._reader.one("claim_key", *row)) is None:
            pass  # another was first in this very moment; now it is visible
        holder, known = found
        return KeyHolder(execution_id=holder, fingerprint=known, fresh=holder == execution_id)

    async def find(self, key: str) -> str | None:
        found = await self._reader.one("find_key", key)
        return None if found is None else str(found[0])

    async def prune(self, before_ms: int) -> int:
        return await self._reader.write("prune_keys", before_ms)


class PostgresCredentials(SqlCredentials):
    """Credentials; see its contract."""

    def __init__(self, reader: PostgresReader) -> None:
        super().__init__(reader)
        self._reader = reader

    async def rewrite(self, change: Callable[[SealedCredential], SealedCredential]) -> int:
        async def rewrite(connection: asyncpg.Connection) -> int:
            async with connection.transaction():
                await connection.execute(SQL["lock_credentials"])
                rows = await connection.fetch(SQL["all_credentials"])
                changed = [astuple(change(struct_of(SealedCredential, row))) for row in rows]
                await connection.executemany(SQL["keep_credential"], changed)
            return len(rows)

        return await self._reader.patiently(rewrite)


class PostgresTriggers(SqlTriggers):
    """Triggers; see its contract."""

    async def take(self, now: int, until: int, limit: int) -> Sequence[TriggerRow]:
        rows = await self._statements.rows("take_triggers", now, until, limit)
        return sorted((trigger_of(row) for row in rows), key=lambda row: row.due_at or 0)


class PostgresRemovals(SqlRemovals):
    """Removals; see its contract."""

    async def remove(self, execution_id: str) -> list[str]:
        rows = await self._statements.rows("remove_family", execution_id, now_ms())
        return [row[0] for row in rows]

    async def clear(self, execution_id: str, *, most: int = 1000) -> bool:
        return bool((await self._statements.one("clear_removed", execution_id, most))[0])
