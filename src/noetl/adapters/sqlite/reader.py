"""Who reads from the home: one thread with its own connection, beside the one that writes."""

import asyncio
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from noetl.adapters.sqlite.database import Parameters, open_reader, rows_of
from noetl.adapters.sqlite.faults import unavailable
from noetl.adapters.sqlite.locks import Locks
from noetl.errors import LogUnavailable

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")


class SqliteReader:
    """Reads see all that was committed before they began. The thread starts with the first."""

    def __init__(self, folder: Path, locks: Locks) -> None:
        self._folder = folder
        self._locks = locks
        self._connection: apsw.Connection | None = None
        self._closed = False

    @cached_property
    def _thread(self) -> "ThreadPoolExecutor":
        from concurrent.futures import ThreadPoolExecutor  # a short run reads nothing

        return ThreadPoolExecutor(max_workers=1, thread_name_prefix="noetl-read")

    async def rows(self, statement: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """All rows of the statement of this name."""
        try:
            return await self.look(lambda connection: rows_of(connection, statement, parameters))
        except UnicodeEncodeError:
            return []  # half of a surrogate pair: whoever asks with it, nothing has such a name

    async def look(self, at: Callable[[apsw.Connection], T]) -> T:
        """Whatever `at` finds."""
        if self._closed:
            raise LogUnavailable(f"the home {self._folder} is closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._attempt, at)

    def close(self) -> None:
        """Wait for the read in progress and let go of the file."""
        self._closed = True
        if "_thread" in self.__dict__:
            self._thread.shutdown()
        if self._connection is not None:
            self._connection.close()

    def _attempt(self, at: Callable[[apsw.Connection], T]) -> T:
        try:
            return self._locks.patiently(lambda: at(self._opened()))
        except apsw.Error as error:
            raise unavailable(error, self._folder) from error

    def _opened(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = open_reader(self._folder)
        return self._connection
