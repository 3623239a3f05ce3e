"""The log in memory: writes at once, answers at once."""

from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from noetl.adapters.batching import check, overtaken, still_refused
from noetl.adapters.memory.limits import drop_claims, holds_place, take_place
from noetl.adapters.memory.tables import MemoryTables
from noetl.errors import NoetlError, VersionConflict
from noetl.ports.commit import Commit
from noetl.ports.event_log import Decision, LogRow, Snapshot


class MemoryEventLog:
    """EventLog; see its contract."""

    def __init__(self, tables: MemoryTables, me: str) -> None:
        self._tables = tables
        self._me = me
        self._refused: set[str] = set()

    def append(self, decision: Decision, *, alone: bool = False) -> Commit:  # noqa: ARG002
        check(decision)
        commit = Commit()
        refusal = self._refusal(decision)
        if refusal is None:
            self._write(decision)
        else:
            self._refused.add(decision.execution_id)
        commit.settle(refusal)
        return commit

    async def read(
        self, execution_id: str, *, after: int = 0, limit: int = 1000
    ) -> Sequence[LogRow]:
        rows = self._tables.decisions.get(execution_id, [])
        start = bisect_right(rows, after, key=lambda row: row.last)
        return rows[start : start + limit]

    async def snapshot(self, execution_id: str) -> Snapshot | None:
        return self._tables.snapshots.get(execution_id)

    def forget(self, execution_id: str) -> None:
        self._refused.discard(execution_id)

    def _refusal(self, decision: Decision) -> NoetlError | None:
        row = self._tables.rows.get(decision.execution_id)
        stands_at = 0 if row is None else row.seq
        if decision.execution_id in self._refused:
            return still_refused(decision, VersionConflict)
        mine = row is None or row.owner in (None, self._me)
        if stands_at != decision.expected or not mine:
            return overtaken(decision, stands_at)
        if decision.holds and not self._has_place(decision):
            return overtaken(decision, stands_at)
        return None

    def _has_place(self, decision: Decision) -> bool:
        if holds_place(self._tables, decision.execution_id):
            return True
        return decision.claim is not None and take_place(self._tables, decision.claim, self._me)

    def _write(self, decision: Decision) -> None:
        tables, name = self._tables, decision.execution_id
        row = decision.row
        if row is None:
            row = msgspec.structs.replace(tables.rows[name], updated_at=decision.at)
        tables.rows[name] = msgspec.structs.replace(row, seq=decision.last)
        tables.decisions.setdefault(name, []).append(
            LogRow(decision.expected + 1, decision.last, decision.at, decision.events)
        )
        if decision.snapshot is not None:
            tables.snapshots[name] = Snapshot(decision.last, decision.snapshot)
        for number in decision.notes:
            tables.notes.pop(number, None)
        for holder in decision.releases:
            drop_claims(tables, name, holder)
