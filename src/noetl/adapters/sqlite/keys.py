"""Idempotency keys in the home's database."""

import apsw

from noetl.adapters.registers import now_ms
from noetl.adapters.sqlite.database import rows_of, write
from noetl.adapters.sqlite.writer import SqliteWriter
from noetl.ports.keys import KeyHolder


class SqliteKeys:
    """Keys; see its contract."""

    def __init__(self, writer: SqliteWriter) -> None:
        self._writer = writer

    async def claim(self, key: str, fingerprint: str, execution_id: str) -> KeyHolder:
        def claim(connection: apsw.Connection) -> KeyHolder:
            write(connection, "claim_key", (key, fingerprint, execution_id, now_ms()))
            holder, known = rows_of(connection, "find_key", (key,))[0]
            fresh = holder == execution_id
            return KeyHolder(execution_id=holder, fingerprint=known, fresh=fresh)

        return await self._writer.transact(claim)

    async def prune(self, before_ms: int) -> int:
        return await self._writer.transact(lambda home: write(home, "prune_keys", (before_ms,)))
