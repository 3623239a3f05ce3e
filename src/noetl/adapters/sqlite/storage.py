"""A home folder on SQLite: the log and its neighbours, opened together."""

import os
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from noetl.adapters.sql import SqlEventLog, SqlPlaybooks, SqlPrinted
from noetl.adapters.sqlite.database import may_be_written, open_database, open_to_look
from noetl.adapters.sqlite.executions import SqliteExecutions, SqliteStatements
from noetl.adapters.sqlite.inbox import SqliteInbox
from noetl.adapters.sqlite.locks import PATIENCE, Locks, Says, to_stderr
from noetl.adapters.sqlite.owners import SqliteOwners, register
from noetl.adapters.sqlite.reader import SqliteReader
from noetl.adapters.sqlite.writer import SqliteWriter

if TYPE_CHECKING:
    from noetl.adapters.sql_audit import SqlAudit
    from noetl.adapters.sql_cache import SqlCache
    from noetl.adapters.sql_registers import SqlPools, SqlRoster, SqlTokens
    from noetl.adapters.sqlite.limits import SqliteLimits
    from noetl.adapters.sqlite.registers import (
        SqliteCatalog,
        SqliteCredentials,
        SqliteKeys,
        SqliteRemovals,
        SqliteTriggers,
    )

REGISTERS: Final = {
    "audit": ("sql_audit", "SqlAudit"),
    "cache": ("sql_cache", "SqlCache"),
    "catalog": ("sqlite.registers", "SqliteCatalog"),
    "credentials": ("sqlite.registers", "SqliteCredentials"),
    "keys": ("sqlite.registers", "SqliteKeys"),
    "limits": ("sqlite.limits", "SqliteLimits"),
    "pools": ("sql_registers", "SqlPools"),
    "removals": ("sqlite.registers", "SqliteRemovals"),
    "roster": ("sql_registers", "SqlRoster"),
    "tokens": ("sql_registers", "SqlTokens"),
    "triggers": ("sqlite.registers", "SqliteTriggers"),
}
"""Neighbours of the log by module and class: most runs ask none of them, and import none."""


class SqliteStorage:
    """Everything of one home. Several processes may have it open at the same time."""

    audit: "SqlAudit"
    cache: "SqlCache"
    catalog: "SqliteCatalog"
    credentials: "SqliteCredentials"
    keys: "SqliteKeys"
    limits: "SqliteLimits"
    pools: "SqlPools"
    removals: "SqliteRemovals"
    roster: "SqlRoster"
    tokens: "SqlTokens"
    triggers: "SqliteTriggers"

    def __init__(self, folder: Path, writer: SqliteWriter, me: str, locks: Locks) -> None:
        self.folder = folder
        self.key: bytes | None = None
        """Not here: a home keeps it in a file of its own, or its owner elsewhere."""
        self.writer = writer
        self._reader = SqliteReader(folder, locks)
        self._statements = statements = SqliteStatements(writer, self._reader, me)
        self.log = SqlEventLog(writer, statements)
        self.executions = SqliteExecutions(statements)
        self.playbooks = SqlPlaybooks(statements)
        self.inbox = SqliteInbox(writer, self._reader, me)
        self.owners = SqliteOwners(writer, self._reader, me)
        self.printed = SqlPrinted(writer, statements)

    def __getattr__(self, name: str) -> Any:
        """A register, when it is first asked for."""
        if name not in REGISTERS:
            raise AttributeError(name)
        module, kind = REGISTERS[name]
        made = getattr(import_module(f"noetl.adapters.{module}"), kind)(self._statements)
        setattr(self, name, made)
        return made

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
    me = os.urandom(8).hex()
    locks = Locks(folder, patience=patience, says=says)
    opened = open_to_look if looking and not may_be_written(folder) else open_database
    enters = partial(register, me=me)
    writer = SqliteWriter(opened(folder, locks), folder, me, enters, locks)
    return SqliteStorage(folder, writer, me, locks)
