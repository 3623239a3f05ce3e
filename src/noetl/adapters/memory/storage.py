"""A home that forgets: the log and its neighbours in memory, for simulations and tests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from noetl.adapters.lines import shortened
from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.adapters.memory.executions import MemoryExecutions
from noetl.adapters.memory.owners import MemoryInbox, MemoryOwners
from noetl.adapters.memory.registers import MemoryCatalog, MemoryKeys, MemoryRoster, MemoryTokens
from noetl.adapters.memory.shelves import Shelves
from noetl.ports.event_log import ExecutionRow, PrintedLine


class MemoryPlaybooks:
    """Playbooks; see its contract."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves

    async def keep(self, digest: str, path: str, text: str, folder: str | None) -> None:  # noqa: ARG002
        self._shelves.playbooks[digest] = (text, folder)

    async def text(self, digest: str) -> tuple[str, str | None] | None:
        return self._shelves.playbooks.get(digest)


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


class MemoryStorage:
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
        self.catalog = MemoryCatalog(self.shelves)
        self.keys = MemoryKeys(self.shelves)
        self.tokens = MemoryTokens(self.shelves)
        self.roster = MemoryRoster(self.shelves)
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
        self.shelves.notes = {
            number: note for number, note in self.shelves.notes.items() if note.execution_id in rows
        }
        self.shelves.printed = [line for line in self.shelves.printed if line.execution_id in rows]
        return ended

    async def close(self) -> None:
        """The process goes in good order."""
        self.die()

    def _needed(self, row: ExecutionRow) -> bool:
        parent = self.shelves.rows.get(row.parent_execution_id or "")
        return parent is not None and parent.finished_at is None
