"""A home that forgets: the log and its neighbours in memory, for simulations and tests."""

import secrets
from bisect import bisect_right
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, Self

import msgspec

from noetl.adapters.lines import shortened
from noetl.adapters.memory.credentials import MemoryCredentials
from noetl.errors import ExecutionNotFound, HomeInUse, NoetlError, VersionConflict
from noetl.ports.commit import Commit
from noetl.ports.event_log import (
    Decision,
    ExecutionRow,
    LogRow,
    Note,
    PrintedLine,
    Snapshot,
)


class Shelves:
    """What the processes of one home share."""

    def __init__(self) -> None:
        self.rows: dict[str, ExecutionRow] = {}
        self.decisions: dict[str, list[LogRow]] = {}
        self.snapshots: dict[str, Snapshot] = {}
        self.playbooks: dict[str, tuple[str, str | None]] = {}
        self.notes: list[Note] = []
        self.numbers = count(1)
        self.alive: set[str] = set()
        self.printed: list[PrintedLine] = []
        self.credentials = MemoryCredentials()
        self.key = secrets.token_bytes(32)


def find(shelves: Shelves, execution_id: str) -> ExecutionRow:
    """The row of an execution that must exist."""
    if execution_id not in shelves.rows:
        raise ExecutionNotFound(f"no execution {execution_id} in memory; see `noetl list`")
    return shelves.rows[execution_id]


class MemoryEventLog:
    """EventLog; see its contract. Writes at once, answers at once."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves
        self._refused: set[str] = set()

    def append(self, decision: Decision, *, alone: bool = False) -> Commit:  # noqa: ARG002
        if decision.expected == 0 and decision.row is None:
            raise ValueError(f"the first decision of {decision.execution_id} comes without its row")
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
        rows = self._shelves.decisions.get(execution_id, [])
        start = bisect_right(rows, after, key=lambda row: row.last)
        return rows[start : start + limit]

    async def snapshot(self, execution_id: str) -> Snapshot | None:
        return self._shelves.snapshots.get(execution_id)

    def forget(self, execution_id: str) -> None:
        self._refused.discard(execution_id)

    def _refusal(self, decision: Decision) -> NoetlError | None:
        row = self._shelves.rows.get(decision.execution_id)
        stands_at = 0 if row is None else row.seq
        if decision.execution_id in self._refused:
            return VersionConflict(
                f"execution {decision.execution_id}: an earlier decision was not written, so the "
                f"one after {decision.expected} is not either; load it again and decide again"
            )
        if stands_at != decision.expected:
            return VersionConflict(
                f"execution {decision.execution_id} stands at {stands_at}, not at "
                f"{decision.expected}: another writer was first; load it again and decide again"
            )
        return None

    def _write(self, decision: Decision) -> None:
        shelves, name = self._shelves, decision.execution_id
        row = decision.row
        if row is None:
            row = msgspec.structs.replace(shelves.rows[name], updated_at=decision.at)
        shelves.rows[name] = msgspec.structs.replace(row, seq=decision.last)
        shelves.decisions.setdefault(name, []).append(
            LogRow(decision.expected + 1, decision.last, decision.at, decision.events)
        )
        if decision.snapshot is not None:
            shelves.snapshots[name] = Snapshot(decision.last, decision.snapshot)


class MemoryExecutions:
    """Executions; see its contract."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves

    async def find(self, execution_id: str) -> ExecutionRow | None:
        row = self._shelves.rows.get(execution_id)
        return None if row is None else msgspec.structs.replace(row)

    async def page(
        self,
        *,
        status: str | None = None,
        path: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[ExecutionRow]:
        newest_first = list(reversed(self._shelves.rows.values()))
        if before is not None:
            names = [row.execution_id for row in newest_first]
            start = names.index(before) + 1 if before in names else len(names)
            newest_first = newest_first[start:]
        return [
            msgspec.structs.replace(row)
            for row in newest_first
            if status in (None, row.status) and path in (None, row.path)
        ][:limit]


class MemoryPlaybooks:
    """Playbooks; see its contract."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves

    async def keep(self, digest: str, path: str, text: str, folder: str | None) -> None:  # noqa: ARG002
        self._shelves.playbooks[digest] = (text, folder)

    async def text(self, digest: str) -> tuple[str, str | None] | None:
        return self._shelves.playbooks.get(digest)


class MemoryInbox:
    """Inbox; see its contract."""

    def __init__(self, shelves: Shelves, me: str) -> None:
        self._shelves = shelves
        self._me = me

    async def leave(self, execution_id: str, kind: str, fields: dict[str, Any]) -> None:
        find(self._shelves, execution_id)
        number = next(self._shelves.numbers)
        self._shelves.notes.append(
            Note(note_id=number, execution_id=execution_id, kind=kind, fields=dict(fields))
        )

    async def collect(self) -> Sequence[Note]:
        mine = [note for note in self._shelves.notes if self._owns(note.execution_id)]
        self._shelves.notes = [note for note in self._shelves.notes if note not in mine]
        return mine

    def _owns(self, execution_id: str) -> bool:
        row = self._shelves.rows.get(execution_id)
        return row is not None and row.owner == self._me


class MemoryOwners:
    """Owners; see its contract. A process dies with `MemoryHome.die`."""

    def __init__(self, shelves: Shelves, me: str) -> None:
        self._shelves = shelves
        self._me = me

    @property
    def me(self) -> str:
        return self._me

    async def claim(self, execution_id: str) -> None:
        row = find(self._shelves, execution_id)
        if row.owner not in (None, self._me) and row.owner in self._shelves.alive:
            raise HomeInUse(
                f"execution {execution_id} is run by process {row.owner}; wait for it, or stop it "
                f"with `noetl cancel {execution_id}`"
            )
        self._shelves.rows[execution_id] = msgspec.structs.replace(row, owner=self._me)

    async def release(self, execution_id: str) -> None:
        row = self._shelves.rows.get(execution_id)
        if row is not None and row.owner == self._me:
            self._shelves.rows[execution_id] = msgspec.structs.replace(row, owner=None)

    async def holder(self, execution_id: str) -> str | None:
        row = self._shelves.rows.get(execution_id)
        return row.owner if row is not None and row.owner in self._shelves.alive else None


class MemoryPrinted:
    """Printed; see its contract."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves

    def keep(self, line: PrintedLine) -> None:
        self._shelves.printed.append(shortened(line))

    async def flush(self) -> None:
        """Nothing waits here."""

    async def read(
        self, execution_id: str, *, step: str | None = None, limit: int = 10_000
    ) -> Sequence[PrintedLine]:
        return [
            line
            for line in self._shelves.printed
            if line.execution_id == execution_id and step in (None, line.step)
        ][:limit]


class MemoryHome:
    """Everything of one home, as one process of it sees it."""

    def __init__(self, shelves: Shelves | None = None, me: str = "1") -> None:
        self.shelves = shelves or Shelves()
        self.shelves.alive.add(me)
        self.log = MemoryEventLog(self.shelves)
        self.executions = MemoryExecutions(self.shelves)
        self.playbooks = MemoryPlaybooks(self.shelves)
        self.inbox = MemoryInbox(self.shelves, me)
        self.owners = MemoryOwners(self.shelves, me)
        self.printed = MemoryPrinted(self.shelves)
        self.credentials = self.shelves.credentials
        self.key: bytes | None = self.shelves.key
        self.folder: Path | None = None

    def beside(self, me: str) -> Self:
        """The same home in another process."""
        return type(self)(self.shelves, me)

    def die(self) -> None:
        """From now on others may take over what this process owns."""
        self.shelves.alive.discard(self.owners.me)

    async def prune(self, before: int, *, limit: int = 1000) -> list[str]:
        """Forget executions that ended before a time (ms), oldest first."""
        rows = self.shelves.rows
        ended = [
            row.execution_id
            for row in rows.values()
            if row.finished_at is not None and row.finished_at < before and not self._needed(row)
        ][:limit]
        for name in ended:
            del rows[name]
            self.shelves.decisions.pop(name, None)
            self.shelves.snapshots.pop(name, None)
        self.shelves.notes = [note for note in self.shelves.notes if note.execution_id in rows]
        self.shelves.printed = [line for line in self.shelves.printed if line.execution_id in rows]
        return ended

    async def close(self) -> None:
        """The process goes in good order."""
        self.die()

    def _needed(self, row: ExecutionRow) -> bool:
        parent = self.shelves.rows.get(row.parent_execution_id or "")
        return parent is not None and parent.finished_at is None
