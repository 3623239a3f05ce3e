"""Limits on PostgreSQL: functions of the database, so that counting takes one round trip."""

from collections.abc import Sequence

import asyncpg
import msgspec
from msgspec.structs import asdict

from noetl.adapters.postgres.claiming import named
from noetl.adapters.postgres.columns import storable
from noetl.adapters.postgres.reader import PostgresReader
from noetl.adapters.postgres.statements import SQL
from noetl.adapters.postgres.writer import PostgresWriter
from noetl.adapters.sql import struct_of
from noetl.ports.limits import UNBEGUN, LimitClaim, LimitPlace


class PostgresLimits:
    """LimitClaims; see its contract."""

    def __init__(self, writer: PostgresWriter, reader: PostgresReader, me: str) -> None:
        self._writer = writer
        self._reader = reader
        self._me = me

    async def take(self, claims: Sequence[LimitClaim]) -> list[int]:
        if not self._writer.lease.held:
            await self._writer.enter()
        given = [
            asdict(claim)
            | {"group": named(claim.group), "key": storable(claim.key), "process": self._me}
            for claim in claims
        ]
        rows = await self._reader.rows("take_limits", msgspec.json.encode(given).decode())
        return [row[0] for row in rows]

    async def grant(self) -> list[tuple[str, str]] | None:
        groups = await self._reader.rows("waiting_groups")
        if not groups:
            return None
        named: list[tuple[str, str]] = []
        for (group,) in groups:
            rows = await self._reader.rows("grant_limits", group)
            named += [(name, holder) for name, holder in rows]
        return named

    async def granted(self) -> list[tuple[str, str]]:
        rows = await self._reader.rows("granted_claims")
        return [(name, holder) for name, holder in rows]

    async def park(self, execution_ids: Sequence[str]) -> list[str]:
        await self._writer.drain()
        rows = await self._reader.rows("park_executions", list(execution_ids), self._me)
        return [row[0] for row in rows]

    async def release(self, execution_id: str, holder: str = "") -> None:
        await self._reader.write("release_claim", execution_id, holder)

    async def withdraw(self, execution_id: str) -> None:
        await self._reader.write("withdraw_claim", execution_id)

    async def abandoned(self) -> int:
        await self._reader.write("forget_begun")
        return await self._reader.patiently(_drop_unbegun)

    async def holders(self, group: str, key: str) -> list[str]:
        return [row[0] for row in await self._reader.rows("limit_holders", named(group), key)]

    async def holding(self, group: str, key: str | None, limit: int) -> list[str]:
        return [
            row[0] for row in await self._reader.rows("limit_holding", named(group), key, limit)
        ]

    async def places(self, execution_id: str) -> list[LimitPlace]:
        rows = await self._reader.rows("limit_places", execution_id)
        return [struct_of(LimitPlace, row) for row in rows]


async def _drop_unbegun(connection: asyncpg.Connection) -> int:
    """In two statements: the second sees what was committed before the locks of the first."""
    async with connection.transaction():
        locked = [row[0] for row in await connection.fetch(SQL["lock_unbegun"], UNBEGUN)]
        told = await connection.execute(SQL["drop_unbegun"], locked)
    return int(str(told).rpartition(" ")[2])
