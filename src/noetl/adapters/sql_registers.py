"""Catalog, tokens, workers, triggers and the like on any SQL database (see `sql`)."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import astuple

from noetl.adapters.registers import CatalogReads, check_added, entry_of, now_ms
from noetl.adapters.sql import Statements, struct_of
from noetl.ports.catalog import CatalogEntry
from noetl.ports.credentials import SealedCredential
from noetl.ports.pools import PoolRow, group_of
from noetl.ports.removals import EndedRoot
from noetl.ports.roster import ServerRow, WorkerRow
from noetl.ports.tokens import TokenRow
from noetl.ports.triggers import EndedExecution, Noted, TriggerRow


class SqlCatalog(CatalogReads):
    """Catalog; see its contract. How a version is drawn depends on the database."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def find(self, path: str, version: int | None = None) -> CatalogEntry | None:
        if version is None:
            found = await self._statements.one("newest_playbook", path)
        else:
            found = await self._statements.one("find_playbook", path, version)
        return None if found is None else entry_of(tuple(found))

    async def labelled(self, path: str, label: str) -> Sequence[CatalogEntry]:
        rows = await self._statements.rows("labelled_playbooks", path, label)
        return [entry_of(tuple(row)) for row in rows]

    async def page(self, *, after: str | None = None, limit: int = 50) -> Sequence[CatalogEntry]:
        rows = await self._statements.rows("page_catalog", after or "", limit)
        return [entry_of(tuple(row)) for row in rows]

    async def versions(
        self, path: str, *, before: int | None = None, limit: int = 50
    ) -> Sequence[CatalogEntry]:
        rows = await self._statements.rows("page_versions", path, before, limit)
        return [entry_of(tuple(row)) for row in rows]

    async def remove(self, path: str, version: int) -> None:
        await self._statements.write("remove_version", path, version, now_ms())

    async def _text(self, digest: str) -> str | None:
        found = await self._statements.one("read_playbook", digest)
        return None if found is None else str(found[0])


class SqlTokens:
    """Tokens; see its contract."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add(self, row: TokenRow) -> None:
        if await self._statements.write("add_token", *astuple(row)) == 0:
            check_added(row, await self.find(row.digest))

    async def find(self, digest: str) -> TokenRow | None:
        found = await self._statements.one("find_token", digest)
        return None if found is None else struct_of(TokenRow, found)

    async def all(self) -> Sequence[TokenRow]:
        return [struct_of(TokenRow, row) for row in await self._statements.rows("all_tokens")]

    async def revoke(self, token_id: str) -> bool:
        return await self._statements.write("revoke_token", token_id, now_ms()) == 1

    async def forget_sessions(self, now_ms: int) -> int:
        return await self._statements.write("forget_sessions", now_ms)


class SqlRoster:
    """Roster; see its contract."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def seen(self, row: WorkerRow) -> None:
        await self._statements.write("worker_seen", *astuple(row))

    async def gone(self, name: str) -> None:
        await self._statements.write("worker_gone", name)

    async def workers(self, *, since_ms: int | None = None) -> Sequence[WorkerRow]:
        rows = await self._statements.rows("workers", since_ms or 0)
        return [struct_of(WorkerRow, row) for row in rows]

    async def server_seen(self, row: ServerRow) -> None:
        await self._statements.write("server_seen", *astuple(row))

    async def server_gone(self, name: str) -> None:
        await self._statements.write("server_gone", name)

    async def servers(self, *, since_ms: int | None = None) -> Sequence[ServerRow]:
        rows = await self._statements.rows("servers", since_ms or 0)
        return [struct_of(ServerRow, row) for row in rows]


class SqlPools:
    """Pools; see its contract."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def put(self, row: PoolRow) -> None:
        await self._statements.write("put_pool", *astuple(row))
        await self._statements.write("bind_waiting", group_of(row.name), row.at_once)

    async def remove(self, name: str) -> bool:
        return await self._statements.write("remove_pool", name) == 1

    async def all(self) -> Sequence[PoolRow]:
        return [struct_of(PoolRow, row) for row in await self._statements.rows("all_pools")]


class SqlCredentials:
    """Credentials; see its contract. What is rewritten together takes a transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def keep(self, credential: SealedCredential) -> None:
        await self._statements.write("keep_credential", *astuple(credential))

    async def find(self, name: str) -> SealedCredential | None:
        found = await self._statements.one("find_credential", name)
        return None if found is None else struct_of(SealedCredential, found)

    async def all(self) -> Sequence[SealedCredential]:
        rows = await self._statements.rows("all_credentials")
        return [struct_of(SealedCredential, row) for row in rows]

    async def remove(self, name: str) -> bool:
        return await self._statements.write("remove_credential", name) == 1

    @abstractmethod
    async def rewrite(self, change: Callable[[SealedCredential], SealedCredential]) -> int:
        """All of them, or none."""


class SqlTriggers:
    """Triggers; see its contract. How rows are taken depends on the database."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def put(self, row: TriggerRow) -> None:
        await self._statements.write("put_trigger", *astuple(row))

    async def find(self, path: str) -> TriggerRow | None:
        found = await self._statements.one("find_trigger", path)
        return None if found is None else trigger_of(found)

    async def page(
        self, *, kind: str | None = None, after: str | None = None, limit: int = 50
    ) -> Sequence[TriggerRow]:
        if kind is None:
            rows = await self._statements.rows("page_triggers", after or "", limit)
        else:
            rows = await self._statements.rows("page_triggers_of", kind, after or "", limit)
        return [trigger_of(row) for row in rows]

    async def settle(self, taken: TriggerRow, made: TriggerRow) -> bool:
        known = (taken.path, taken.version, taken.since, taken.planned_at)
        state = astuple(made)[STATE:]
        return await self._statements.write("settle_trigger", *known, *state) == 1

    async def note(self, path: str, noted: Noted) -> None:
        if noted.execution_id is not None:
            await self._statements.write("note_start", path, noted.at, noted.execution_id)
        if noted.why is not None:
            await self._statements.write("note_skip", path, noted.at, noted.why)

    async def remove(self, path: str) -> bool:
        return await self._statements.write("remove_trigger", path) == 1

    async def ended(
        self, since: int, *, after: str = "", limit: int = 100
    ) -> Sequence[EndedExecution]:
        rows = await self._statements.rows("ended_since", since, after, limit)
        return [struct_of(EndedExecution, row) for row in rows]


STATE = TriggerRow.__struct_fields__.index("planned_at")
"""The columns from here on are what a turn changes."""


def trigger_of(columns: Any) -> TriggerRow:
    row = struct_of(TriggerRow, columns)
    return msgspec.structs.replace(row, paused=bool(row.paused))


class SqlRemovals:
    """Removals; see its contract. How a family is removed at once depends on the database."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def ended(
        self, before: int, *, since: int = 0, after: str = "", limit: int = 100
    ) -> Sequence[EndedRoot]:
        rows = await self._statements.rows("ended_roots", before, since, after, limit)
        return [struct_of(EndedRoot, row) for row in rows]

    async def family(self, execution_id: str) -> list[str]:
        return [row[0] for row in await self._statements.rows("family", execution_id)]

    @abstractmethod
    async def remove(self, execution_id: str) -> list[str]:
        """All of them, or none."""

    async def left(self, before: int, *, limit: int = 100) -> list[str]:
        return [row[0] for row in await self._statements.rows("removals_left", before, limit)]

    @abstractmethod
    async def clear(self, execution_id: str, *, most: int = 1000) -> bool:
        """In one commit."""

    async def is_removed(self, execution_id: str) -> bool:
        return await self._statements.one("is_removed", execution_id) is not None

    async def forget(self, before: int) -> int:
        return await self._statements.write("forget_removals", before)
