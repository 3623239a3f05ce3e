"""The neighbours of the log on SQLite: what is its own way of keeping them (`adapters.sql`)."""

from collections.abc import Callable, Sequence
from functools import partial

import apsw
from msgspec.structs import astuple

from noetl.adapters.registers import columns_of, entry_of, now_ms, texts_of
from noetl.adapters.sql import struct_of
from noetl.adapters.sql_registers import (
    SqlCatalog,
    SqlCredentials,
    SqlRemovals,
    SqlTriggers,
    trigger_of,
)
from noetl.adapters.sqlite.database import rows_of, write
from noetl.adapters.sqlite.executions import SqliteStatements
from noetl.ports.catalog import CatalogEntry, Registration
from noetl.ports.credentials import SealedCredential
from noetl.ports.keys import KeyHolder
from noetl.ports.triggers import TriggerRow

PARTS = ("forget_snapshot", "forget_notes", "forget_claims", "forget_execution")
"""What goes at once with a removed execution; its log and its printed lines go bit by bit."""
LEFT = ("clear_decisions", "clear_printed")


class SqliteCatalog(SqlCatalog):
    """Catalog; see its contract."""

    def __init__(self, statements: SqliteStatements) -> None:
        super().__init__(statements)
        self._writer = statements.writer

    async def register(self, asked: Registration) -> tuple[CatalogEntry, bool]:
        return await self._writer.transact(partial(_register, asked))


def _register(asked: Registration, connection: apsw.Connection) -> tuple[CatalogEntry, bool]:
    found = [entry_of(row) for row in rows_of(connection, "newest_playbook", (asked.path,))]
    if found and found[0].digest == asked.digest:
        return found[0], False
    for digest, text in texts_of(asked):
        write(connection, "keep_text", (digest, asked.path, text))
    [(last,)] = rows_of(connection, "last_version", (asked.path,))
    columns = columns_of(asked, last + 1)
    write(connection, "register_playbook", columns)
    return entry_of(columns), True


class SqliteKeys:
    """Keys; see its contract."""

    def __init__(self, statements: SqliteStatements) -> None:
        self._statements = statements

    async def claim(self, key: str, fingerprint: str, execution_id: str) -> KeyHolder:
        def claim(connection: apsw.Connection) -> KeyHolder:
            write(connection, "claim_key", (key, fingerprint, execution_id, now_ms()))
            holder, known = rows_of(connection, "find_key", (key,))[0]
            fresh = holder == execution_id
            return KeyHolder(execution_id=holder, fingerprint=known, fresh=fresh)

        return await self._statements.writer.transact(claim)

    async def find(self, key: str) -> str | None:
        found = await self._statements.one("find_key", key)
        return None if found is None else str(found[0])

    async def prune(self, before_ms: int) -> int:
        return await self._statements.write("prune_keys", before_ms)


class SqliteCredentials(SqlCredentials):
    """Credentials; see its contract."""

    def __init__(self, statements: SqliteStatements) -> None:
        super().__init__(statements)
        self._writer = statements.writer

    async def rewrite(self, change: Callable[[SealedCredential], SealedCredential]) -> int:
        def rewrite(connection: apsw.Connection) -> int | Exception:
            rows = rows_of(connection, "all_credentials")
            try:
                changed = [change(struct_of(SealedCredential, row)) for row in rows]
            except Exception as broken:
                return broken  # before anything was written
            for credential in changed:
                write(connection, "keep_credential", astuple(credential))
            return len(changed)

        answer = await self._writer.transact(rewrite)
        if isinstance(answer, Exception):
            raise answer
        return answer


class SqliteTriggers(SqlTriggers):
    """Triggers; see its contract."""

    def __init__(self, statements: SqliteStatements) -> None:
        super().__init__(statements)
        self._sqlite = statements

    async def take(self, now: int, until: int, limit: int) -> Sequence[TriggerRow]:
        if not await self._sqlite.reader.rows("due_triggers", (now, 1)):
            return []  # nothing is written to find that nothing is due

        def take(connection: apsw.Connection) -> list[TriggerRow]:
            rows = [trigger_of(row) for row in rows_of(connection, "due_triggers", (now, limit))]
            for row in rows:
                write(connection, "take_trigger", (row.path, until))
            return rows

        return await self._sqlite.writer.transact(take)


class SqliteRemovals(SqlRemovals):
    """Removals; see its contract."""

    def __init__(self, statements: SqliteStatements) -> None:
        super().__init__(statements)
        self._writer = statements.writer

    async def remove(self, execution_id: str) -> list[str]:
        def remove(connection: apsw.Connection) -> list[str]:
            family = [row[0] for row in rows_of(connection, "family", (execution_id,))]
            for member in family:
                for part in PARTS:
                    write(connection, part, (member,))
                write(connection, "note_removal", (member, now_ms()))
            return family

        return await self._writer.transact(remove)

    async def clear(self, execution_id: str, *, most: int = 1000) -> bool:
        def clear(connection: apsw.Connection) -> bool:
            gone = [write(connection, part, (execution_id, most)) for part in LEFT]
            if max(gone) == most:
                return False
            write(connection, "settle_removal", (execution_id,))
            return True

        return await self._writer.transact(clear)
