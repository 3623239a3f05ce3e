"""A home folder on SQLite: the log and its neighbours, opened together."""

import secrets
from functools import partial
from pathlib import Path

from noetl.adapters.sql import SqlEventLog, SqlPlaybooks, SqlPrinted, SqlRoster, SqlTokens
from noetl.adapters.sqlite.database import may_be_written, open_database, open_to_look
from noetl.adapters.sqlite.inbox import SqliteInbox
from noetl.adapters.sqlite.limits import SqliteLimits
from noetl.adapters.sqlite.locks import PATIENCE, Locks, Says, to_stderr
from noetl.adapters.sqlite.owners import SqliteOwners, register
from noetl.adapters.sqlite.reader import SqliteReader
from noetl.adapters.sqlite.registers import (
    SqliteCatalog,
    SqliteCredentials,
    SqliteExecutions,
    SqliteKeys,
    SqliteRemovals,
    SqliteStatements,
    SqliteTriggers,
)
from noetl.adapters.sqlite.writer import SqliteWriter


class SqliteStorage:
    """Everything of one home. Several processes may have it open at the same time."""

    def __init__(self, folder: Path, writer: SqliteWriter, me: str, locks: Locks) -> None:
        self.folder = folder
        self.key: bytes | None = None
        """Not here: a home keeps it in a file of its own, or its owner elsewhere."""
        self.writer = writer
        self._reader = SqliteReader(folder, locks)
        statements = SqliteStatements(writer, self._reader)
        self.log = SqlEventLog(writer, statements)
        self.executions = SqliteExecutions(statements)
        self.playbooks = SqlPlaybooks(statements)
        self.inbox = SqliteInbox(writer, self._reader, me)
        self.owners = SqliteOwners(writer, self._reader, me)
        self.printed = SqlPrinted(writer, statements)
        self.catalog = SqliteCatalog(statements)
        self.keys = SqliteKeys(statements)
        self.tokens = SqlTokens(statements)
        self.roster = SqlRoster(statements)
        self.limits = SqliteLimits(writer, self._reader, me)
        self.credentials = SqliteCredentials(statements)
        self.triggers = SqliteTriggers(statements)
        self.removals = SqliteRemovals(statements)

    async def close(self) -> None:
        """Write what waits, then let go of the files."""
        await self.writer.close()
        self._reader.close()


async def open_storage(
    folder: Path,
    *,
    looking: bool = False,
    patience: float = PATIENCE,
    says: Says = to_stderr,
) -> SqliteStorage:
    """
    Open a home, creating it where it is missing.

    `looking`: one that may not be written is opened too, and refuses what would write;
    `patience`: how many seconds a lock of another program is waited for; `says` hears of it.
    """
    me = secrets.token_hex(8)
    locks = Locks(folder, patience=patience, says=says)
    opened = open_to_look if looking and not may_be_written(folder) else open_database
    enters = partial(register, me=me)
    writer = SqliteWriter(opened(folder, locks), folder, me, enters, locks)
    return SqliteStorage(folder, writer, me, locks)
