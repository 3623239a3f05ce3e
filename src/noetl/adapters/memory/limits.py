"""Limits in memory: the plainest way to say what the contract says."""

import time
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from noetl.adapters.memory.tables import ClaimRow, MemoryTables, unpark
from noetl.ports.limits import COUNTED, UNBEGUN, LimitClaim, LimitPlace
from noetl.ports.pools import PoolRow, group_of

LATELY = 60_000
"""Milliseconds for which a grant is named."""


class MemoryLimits:
    """LimitClaims; see its contract."""

    def __init__(self, tables: MemoryTables, me: str) -> None:
        self._tables = tables
        self._me = me

    async def take(self, claims: Sequence[LimitClaim]) -> list[int]:
        now = _now()
        for claim in claims:
            self._tables.claims.setdefault(
                (claim.execution_id, claim.holder),
                ClaimRow(claim=claim, process=self._me, turn=self._turn(claim), asked_at=now),
            )
        await self.grant()
        found = [self._tables.claims[claim.execution_id, claim.holder] for claim in claims]
        return [min(COUNTED, self._place(row)) for row in found]

    async def grant(self) -> list[tuple[str, str]] | None:
        now, named, waiting = _now(), [], self._waiting()
        for row in waiting:
            if fits(self._tables, row.claim, now):
                row.granted_at = now
                named.append((row.claim.execution_id, row.claim.holder))
                if not row.claim.holder:
                    unpark(self._tables, row.claim.execution_id)
                if row.claim.count is not None:
                    self._tables.begun.append((row.claim.group, row.claim.key, now))
        return named if waiting else None

    async def granted(self) -> list[tuple[str, str]]:
        since = _now() - LATELY
        return [
            name
            for name, row in self._tables.claims.items()
            if row.granted_at is not None and row.granted_at >= since
        ]

    async def park(self, execution_ids: Sequence[str]) -> list[str]:
        noted = {note.execution_id for note in self._tables.notes.values()}
        parked = [one for one in execution_ids if self._waits(one) and one not in noted]
        for name in parked:
            row = self._tables.rows[name]
            self._tables.rows[name] = replace(row, owner=None, queued_at=_now())
        return parked

    def _waits(self, execution_id: str) -> bool:
        row, kept = self._tables.rows.get(execution_id), self._tables.claims.get((execution_id, ""))
        mine = row is not None and row.owner == self._me and row.status == "queued"
        return mine and kept is not None and kept.granted_at is None

    async def release(self, execution_id: str, holder: str = "") -> None:
        drop_claims(self._tables, execution_id, holder)

    async def withdraw(self, execution_id: str) -> None:
        for row in self._waiting():
            if row.claim.execution_id == execution_id:
                del self._tables.claims[execution_id, row.claim.holder]
                unpark(self._tables, execution_id)

    async def abandoned(self) -> int:
        gone = [name for name, row in self._tables.claims.items() if self._is_over(name[0], row)]
        for name in gone:
            del self._tables.claims[name]
        return len(gone)

    async def holders(self, group: str, key: str) -> list[str]:
        rows = [row for row in self._of(group) if row.claim.key == key]
        return [row.claim.execution_id for row in sorted(rows, key=_age)]

    async def holding(self, group: str, key: str | None, limit: int) -> list[str]:
        rows = [row for row in self._of(group) if key in (None, row.claim.key) and row.granted_at]
        rows.sort(key=lambda row: (row.granted_at, row.claim.execution_id))
        return list(dict.fromkeys(row.claim.execution_id for row in rows))[:limit]

    async def places(self, execution_id: str) -> list[LimitPlace]:
        return [
            LimitPlace(
                execution_id=execution_id,
                holder=row.claim.holder,
                group=row.claim.group,
                key=row.claim.key,
                place=self._place(row),
                since=row.asked_at if row.granted_at is None else row.granted_at,
            )
            for name, row in self._tables.claims.items()
            if name[0] == execution_id
        ]

    def _is_over(self, execution_id: str, row: ClaimRow) -> bool:
        execution = self._tables.rows.get(execution_id)
        if execution is None:
            late = row.asked_at < _now() - UNBEGUN
            return late or row.process not in self._tables.alive
        return execution.finished_at is not None

    def _of(self, group: str) -> Iterator[ClaimRow]:
        return claims_of(self._tables, group)

    def _waiting(self) -> list[ClaimRow]:
        rows = [row for row in self._tables.claims.values() if row.granted_at is None]
        return sorted(rows, key=lambda row: (-row.claim.priority, row.turn, row.asked_at))

    def _turn(self, claim: LimitClaim) -> int:
        """The keys take turns: after the last of its own key, and not before who goes now."""
        rows = [row for row in self._of(claim.group) if row.granted_at is None]
        own = [row.turn for row in rows if row.claim.key == claim.key]
        return max(max(own, default=-1) + 1, min((row.turn for row in rows), default=0))

    def _place(self, row: ClaimRow) -> int:
        if row.granted_at is not None:
            return 0
        waiting = [one for one in self._waiting() if one.claim.group == row.claim.group]
        return 1 + waiting.index(row)


class MemoryPools:
    """Pools; see its contract."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    async def put(self, row: PoolRow) -> None:
        self._tables.pools[row.name] = row
        for kept in self._tables.claims.values():
            if kept.claim.group == group_of(row.name) and kept.granted_at is None:
                kept.claim = replace(kept.claim, total=row.at_once)

    async def remove(self, name: str) -> bool:
        return self._tables.pools.pop(name, None) is not None

    async def all(self) -> Sequence[PoolRow]:
        return [self._tables.pools[name] for name in sorted(self._tables.pools)]


def claims_of(tables: MemoryTables, group: str) -> Iterator[ClaimRow]:
    return (row for row in tables.claims.values() if row.claim.group == group)


def fits(tables: MemoryTables, claim: LimitClaim, now: int) -> bool:
    """Whether one more may begin."""
    held = [row.claim for row in claims_of(tables, claim.group) if row.granted_at is not None]
    of_key = sum(other.key == claim.key for other in held)
    since = now - int(claim.seconds * 1000)
    begun = sum(
        (group, key) == (claim.group, claim.key) and at > since for group, key, at in tables.begun
    )
    return (
        (claim.total is None or len(held) < claim.total)
        and (claim.at_once is None or of_key < claim.at_once)
        and (claim.count is None or begun < claim.count)
    )


def take_place(tables: MemoryTables, claim: LimitClaim, me: str) -> bool:
    """Take the place that a start brings its claim for, unless somebody waits or there is none."""
    now = _now()
    waits = any(row.granted_at is None for row in claims_of(tables, claim.group))
    if waits or not fits(tables, claim, now):
        return False
    name = (claim.execution_id, claim.holder)
    tables.claims[name] = ClaimRow(claim=claim, process=me, turn=0, asked_at=now, granted_at=now)
    return True


def holds_place(tables: MemoryTables, execution_id: str) -> bool:
    kept = tables.claims.get((execution_id, ""))
    return kept is not None and kept.granted_at is not None


def drop_claims(tables: MemoryTables, execution_id: str, holder: str) -> None:
    """Those of a step run, or all of an execution."""
    gone = [name for name in tables.claims if name[0] == execution_id and holder in ("", name[1])]
    for name in gone:
        del tables.claims[name]
    unpark(tables, execution_id)


def _age(row: ClaimRow) -> tuple[int, bool, str]:
    return row.asked_at, row.granted_at is None, row.claim.execution_id


def _now() -> int:
    return int(time.time() * 1000)
