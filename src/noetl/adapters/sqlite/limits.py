"""Limits on SQLite: one transaction at a time, so whoever counts counts right."""

from collections.abc import Sequence

import apsw
from msgspec.structs import asdict

from noetl.adapters.processes import Process
from noetl.adapters.registers import now_ms
from noetl.adapters.sql import struct_of
from noetl.adapters.sqlite.database import rows_of, write
from noetl.adapters.sqlite.executions import SqliteStatements
from noetl.ports.limits import UNBEGUN, LimitClaim, LimitPlace

LATELY = 60_000
"""Milliseconds for which a grant is named."""


class SqliteLimits:
    """LimitClaims; see its contract."""

    def __init__(self, statements: SqliteStatements) -> None:
        self._writer = statements.writer
        self._reader = statements.reader
        self._me = statements.me

    async def take(self, claims: Sequence[LimitClaim]) -> list[int]:
        def take(connection: apsw.Connection) -> list[int]:
            for claim in claims:
                given = asdict(claim) | {"now": now_ms(), "process": self._me}
                write(connection, "claim_limit", given)
            for group in {claim.group for claim in claims}:
                _grant(connection, group)
            names = [(claim.execution_id, claim.holder) for claim in claims]
            return [int(rows_of(connection, "limit_place", name)[0][0]) for name in names]

        return await self._writer.transact(take)

    async def grant(self) -> list[tuple[str, str]] | None:
        groups = [row[0] for row in await self._reader.rows("waiting_groups")]
        if not groups:
            return None

        def grant(connection: apsw.Connection) -> list[tuple[str, str]]:
            write(connection, "forget_begun", (now_ms(),))
            return [name for group in groups for name in _grant(connection, group)]

        return await self._writer.transact(grant)

    async def granted(self) -> list[tuple[str, str]]:
        rows = await self._reader.rows("granted_claims", (now_ms() - LATELY,))
        return [(name, holder) for name, holder in rows]

    async def park(self, execution_ids: Sequence[str]) -> list[str]:
        def park(connection: apsw.Connection) -> list[str]:
            now = now_ms()
            return [
                name
                for name in execution_ids
                if write(connection, "park_execution", (now, name, self._me))
            ]

        return await self._writer.transact(park)

    async def release(self, execution_id: str, holder: str = "") -> None:
        row = (execution_id, holder)
        await self._writer.transact(lambda home: write(home, "release_claim", row))

    async def withdraw(self, execution_id: str) -> None:
        row = (execution_id,)
        await self._writer.transact(lambda home: write(home, "withdraw_claim", row))

    async def abandoned(self) -> int:
        def drop(connection: apsw.Connection) -> int:
            dead = [
                row[0]
                for row in rows_of(connection, "unbegun_claims", (now_ms() - UNBEGUN,))
                if row[1] is None or not Process(*row[1:]).alive()
            ]
            return sum(write(connection, "release_claim", (name, "")) for name in dead)

        return await self._writer.transact(drop)

    async def holders(self, group: str, key: str) -> list[str]:
        return [row[0] for row in await self._reader.rows("limit_holders", (group, key))]

    async def holding(self, group: str, key: str | None, limit: int) -> list[str]:
        rows = await self._reader.rows("limit_holding", (group, key, key, limit))
        return [row[0] for row in rows]

    async def places(self, execution_id: str) -> list[LimitPlace]:
        rows = await self._reader.rows("limit_places", (execution_id,))
        return [struct_of(LimitPlace, row) for row in rows]


def _grant(connection: apsw.Connection, group: str) -> list[tuple[str, str]]:
    """Let begin whatever may begin in a group."""
    named: list[tuple[str, str]] = []
    now = now_ms()
    while found := rows_of(connection, "next_claim", {"group": group, "now": now}):
        execution_id, holder, key, counted, seconds = found[0]
        write(connection, "grant_claim", (now, execution_id, holder))
        if counted is not None:
            write(connection, "count_begun", (group, key, now, now + int(seconds * 1000)))
        named.append((execution_id, holder))
    return named
