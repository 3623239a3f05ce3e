"""Idempotency keys in the database."""

from noetl.adapters.postgres.reader import PostgresReader
from noetl.adapters.registers import now_ms
from noetl.ports.keys import KeyHolder


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

    async def prune(self, before_ms: int) -> int:
        return await self._reader.write("prune_keys", before_ms)
