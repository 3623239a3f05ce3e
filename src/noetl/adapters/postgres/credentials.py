"""Registered credentials in the database of the log."""

from collections.abc import Callable, Sequence
from typing import Any

import asyncpg
from msgspec.structs import astuple

from noetl.adapters.postgres.reader import PostgresReader
from noetl.adapters.postgres.statements import SQL
from noetl.ports.credentials import SealedCredential


class PostgresCredentials:
    """Credentials; see its contract."""

    def __init__(self, reader: PostgresReader) -> None:
        self._reader = reader

    async def keep(self, credential: SealedCredential) -> None:
        await self._reader.write("keep_credential", *astuple(credential))

    async def find(self, name: str) -> SealedCredential | None:
        found = await self._reader.one("find_credential", name)
        return None if found is None else _row(found)

    async def all(self) -> Sequence[SealedCredential]:
        return [_row(found) for found in await self._reader.rows("all_credentials")]

    async def remove(self, name: str) -> bool:
        return await self._reader.write("remove_credential", name) == 1

    async def rewrite(self, change: Callable[[SealedCredential], SealedCredential]) -> int:
        async def rewrite(connection: asyncpg.Connection) -> int:
            async with connection.transaction():
                await connection.execute(SQL["lock_credentials"])
                rows = await connection.fetch(SQL["all_credentials"])
                changed = [astuple(change(_row(found))) for found in rows]
                await connection.executemany(SQL["keep_credential"], changed)
            return len(rows)

        return await self._reader.patiently(rewrite)


def _row(found: Any) -> SealedCredential:
    return SealedCredential(**found)
