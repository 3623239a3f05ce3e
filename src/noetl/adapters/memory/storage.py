"""A home that forgets: the log and its neighbours in memory, for simulations and tests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from noetl.adapters.memory.audit import MemoryAudit
from noetl.adapters.memory.cache import MemoryCache
from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.adapters.memory.executions import MemoryExecutions
from noetl.adapters.memory.limits import MemoryLimits, MemoryPools
from noetl.adapters.memory.owners import MemoryInbox, MemoryOwners
from noetl.adapters.memory.registers import MemoryCatalog, MemoryKeys, MemoryRoster, MemoryTokens
from noetl.adapters.memory.removals import MemoryRemovals
from noetl.adapters.memory.tables import MemoryTables
from noetl.adapters.memory.triggers import MemoryTriggers
from noetl.adapters.sql import shortened
from noetl.ports.event_log import PrintedLine


class MemoryPlaybooks:
    """Playbooks; see its contract."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    async def keep(self, digest: str, path: str, text: str, folder: str | None) -> None:  # noqa: ARG002
        self._tables.playbooks[digest] = (text, folder)

    async def text(self, digest: str) -> tuple[str, str | None] | None:
        return self._tables.playbooks.get(digest)


class MemoryPrinted:
    """Printed; see its contract."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def keep(self, line: PrintedLine) -> None:
        self._tables.printed.append(shortened(line))

    async def flush(self) -> None:
        """Nothing waits here."""

    async def read(
        self, execution_id: str, *, step: str | None = None, skip: int = 0, limit: int = 10_000
    ) -> Sequence[PrintedLine]:
        return [
            line
            for line in self._tables.printed
            if line.execution_id == execution_id and step in (None, line.step)
        ][skip : skip + limit]


class MemoryStorage:
    """Everything of one home, as one process of it sees it."""

    def __init__(self, tables: MemoryTables | None = None, me: str = "1") -> None:
        self.tables = tables or MemoryTables()
        self.tables.alive.add(me)
        self.log = MemoryEventLog(self.tables, me)
        self.executions = MemoryExecutions(self.tables)
        self.playbooks = MemoryPlaybooks(self.tables)
        self.inbox = MemoryInbox(self.tables, me)
        self.owners = MemoryOwners(self.tables, me)
        self.printed = MemoryPrinted(self.tables)
        self.catalog = MemoryCatalog(self.tables)
        self.keys = MemoryKeys(self.tables)
        self.tokens = MemoryTokens(self.tables)
        self.roster = MemoryRoster(self.tables)
        self.limits = MemoryLimits(self.tables, me)
        self.pools = MemoryPools(self.tables)
        self.audit = MemoryAudit(self.tables)
        self.cache = MemoryCache(self.tables)
        self.triggers = MemoryTriggers(self.tables)
        self.removals = MemoryRemovals(self.tables)
        self.credentials = self.tables.credentials
        self.key: bytes | None = self.tables.key
        self.folder: Path | None = None

    def beside(self, me: str) -> Self:
        """The same home in another process."""
        return type(self)(self.tables, me)

    def die(self) -> None:
        """From now on others may take over what this process owns."""
        self.tables.alive.discard(self.owners.me)

    async def close(self) -> None:
        """The process goes in good order."""
        self.die()
