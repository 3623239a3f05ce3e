"""A home on PostgreSQL: the log and its neighbours, opened together."""

import secrets
from pathlib import Path

from noetl.adapters.postgres.database import prepare
from noetl.adapters.postgres.door import Door, Says
from noetl.adapters.postgres.inbox import PostgresInbox
from noetl.adapters.postgres.lease import ProcessLease
from noetl.adapters.postgres.limits import PostgresLimits
from noetl.adapters.postgres.owners import PostgresOwners
from noetl.adapters.postgres.reader import PostgresReader
from noetl.adapters.postgres.registers import (
    PostgresCatalog,
    PostgresCredentials,
    PostgresExecutions,
    PostgresKeys,
    PostgresRemovals,
    PostgresTriggers,
)
from noetl.adapters.postgres.writer import PostgresWriter
from noetl.adapters.sql import SqlEventLog, SqlPlaybooks, SqlPrinted
from noetl.adapters.sql_audit import SqlAudit
from noetl.adapters.sql_cache import SqlCache
from noetl.adapters.sql_registers import SqlPools, SqlRoster, SqlTokens

PATIENCE = 60.0
LEASE = 30.0


class PostgresStorage:
    """Everything of one database. Processes of many machines may have it open at a time."""

    def __init__(self, door: Door, me: str, lease: float, folder: Path | None = None) -> None:
        self.place = door.place
        self.folder = folder
        self.key: bytes | None = None
        """Not here: a key beside what it opens would be none."""
        self._reader = reader = PostgresReader(door)
        self.writer = writer = PostgresWriter(door, ProcessLease(reader, me, lease))
        self.log = SqlEventLog(writer, reader)
        self.executions = PostgresExecutions(reader)
        self.playbooks = SqlPlaybooks(reader)
        self.inbox = PostgresInbox(writer, reader, me)
        self.owners = PostgresOwners(writer, reader, me)
        self.printed = SqlPrinted(writer, reader)
        self.catalog = PostgresCatalog(reader)
        self.keys = PostgresKeys(reader)
        self.tokens = SqlTokens(reader)
        self.roster = SqlRoster(reader)
        self.limits = PostgresLimits(writer, reader, me)
        self.credentials = PostgresCredentials(reader)
        self.pools = SqlPools(reader)
        self.audit = SqlAudit(reader)
        self.cache = SqlCache(reader)
        self.triggers = PostgresTriggers(reader)
        self.removals = PostgresRemovals(reader)

    async def open(self) -> None:
        """Must come first."""
        await self._reader.open()

    async def close(self) -> None:
        """Write what waits, leave, then let go of the connections."""
        await self.writer.close()
        await self.inbox.listener.close()
        await self._reader.close()


async def open_storage(
    dsn: str,
    *,
    patience: float = PATIENCE,
    lease: float = LEASE,
    says: Says | None = None,
    folder: Path | None = None,
    looking: bool = False,
) -> PostgresStorage:
    """
    Open the log in a database, creating its tables where they are missing.

    `patience`: how many seconds calls wait for a server that is away; `lease`: for how long others
    take this process for alive after its last sign; `says` hears when a wait begins and ends;
    `folder`: where this process keeps its own files, such as the key of the credentials;
    `looking`: nothing is created and nothing can be written.
    """
    door = Door(dsn, patience=patience, says=says, looking=looking)
    await prepare(door)
    home = PostgresStorage(door, secrets.token_hex(8), lease, folder)
    await home.open()
    return home
