"""Every adapter of the log and its neighbours, as the contract suites open them."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import apsw
import asyncpg
import pytest
from tests.support.postgres import Database

from noetl.adapters.memory.storage import MemoryStorage
from noetl.adapters.memory.tables import MemoryTables
from noetl.adapters.postgres.storage import PostgresStorage
from noetl.adapters.postgres.storage import open_storage as open_postgres
from noetl.adapters.sqlite.storage import SqliteStorage, open_storage
from noetl.ports.event_log import Decision, ExecutionRow, Note
from noetl.ports.storage import Storage


class Homes(Protocol):
    """One home, opened by as many processes as a test likes."""

    async def open(self) -> Storage: ...

    async def kill(self, home: Any) -> None:
        """Make the others believe that the process of this home is dead."""

    async def close_all(self) -> None: ...


class MemoryHomes:
    """Views of the same tables."""

    def __init__(self, _: Path) -> None:
        self._tables = MemoryTables()
        self._opened: list[MemoryStorage] = []

    async def open(self) -> MemoryStorage:
        self._opened.append(MemoryStorage(self._tables, f"{len(self._opened) + 1}"))
        return self._opened[-1]

    async def kill(self, home: Any) -> None:
        home.die()

    async def close_all(self) -> None:
        for home in self._opened:
            await home.close()


class SqliteHomes:
    """Connections to the same file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "home"
        self._opened: list[SqliteStorage] = []

    async def open(self) -> SqliteStorage:
        self._opened.append(await open_storage(self.folder))
        return self._opened[-1]

    async def kill(self, home: Any) -> None:
        await home.close()
        connection = apsw.Connection(str(self.folder / "noetl.db"))
        # As if the number of the process had been given to this one after it had died.
        connection.execute(
            "update process set ticks = ticks - 1 where token = ?", (home.owners.me,)
        )
        assert connection.changes() == 1
        connection.close()

    async def close_all(self) -> None:
        for home in self._opened:
            await home.close()


class PostgresHomes:
    """Connections to the same database."""

    def __init__(self, database: Database, **options: Any) -> None:
        self.url = database.url
        self._options = {"patience": 30.0} | options
        self._opened: list[PostgresStorage] = []

    async def open(self, **options: Any) -> PostgresStorage:
        self._opened.append(await open_postgres(self.url, **(self._options | options)))
        return self._opened[-1]

    async def kill(self, home: Any) -> None:
        """As if it had stopped without a word, and its lease had run out since."""
        connection = await asyncpg.connect(self.url)
        told = await connection.execute(
            "update noetl.process set expires_at = now() where token = $1", home.owners.me
        )
        assert told == "UPDATE 1"
        await connection.close()

    async def close_all(self) -> None:
        for home in self._opened:
            await home.close()


HOMES: dict[str, Callable[[pytest.FixtureRequest], Homes]] = {
    "memory": lambda request: MemoryHomes(request.getfixturevalue("tmp_path")),
    "sqlite": lambda request: SqliteHomes(request.getfixturevalue("tmp_path")),
    "postgres": lambda request: PostgresHomes(request.getfixturevalue("log_database")),
}
"""A new adapter of the log adds its line here."""


def row(execution_id: str, **fields: Any) -> ExecutionRow:
    """The row of a running execution."""
    usual: dict[str, Any] = {
        "path": "demo/hello",
        "digest": "d1",
        "status": "running",
        "started_at": 1000,
        "updated_at": 1000,
    }
    return ExecutionRow(execution_id=execution_id, **(usual | fields))


def decision(execution_id: str, expected: int, last: int | None = None, **fields: Any) -> Decision:
    """A decision of `last - expected` events; the first one brings its row."""
    last = expected + 1 if last is None else last
    events = ",".join(f'{{"name":"step.started","n":{n}}}' for n in range(expected + 1, last + 1))
    usual: dict[str, Any] = {"at": 5000 + last, "events": f"[{events}]".encode()}
    if expected == 0:
        usual["row"] = row(execution_id)
    return Decision(execution_id=execution_id, expected=expected, last=last, **(usual | fields))


async def taken(home: Storage) -> list[Note]:
    """The notes for the process of this home, out of its inbox."""
    notes = list(await home.inbox.waiting())
    await home.inbox.discard([note.note_id for note in notes])
    return notes


async def answer_of(awaitable: Awaitable[Any]) -> str:
    """`ok`, or the name of what was raised."""
    try:
        await awaitable
    except Exception as error:
        return type(error).__name__
    return "ok"
