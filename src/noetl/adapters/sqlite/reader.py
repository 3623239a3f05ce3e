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
        self._watching: apsw.Connection | None = None
        """The loop's own, which reads one number and nothing else."""
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

    def version(self) -> int | None:
        """
        A number that moves with every commit to the file; None where it is not known just now.

        It stands in memory that all processes share: whoever looks often is spared the change to
        the thread and back, of which an idle server would do little else.
        """
        try:
            if self._watching is None and not self._closed:
                self._watching = open_reader(self._folder)
            return rows_of(self._watching, "seen_changes")[0][0] if self._watching else None
        except apsw.Error:  # the thread meets it again, and knows what to do about it
            return None

    def close(self) -> None:
        """Wait for the read in progress and let go of the file."""
        self._closed = True
        if "_thread" in self.__dict__:
            self._thread.shutdown()
        for connection in (self._connection, self._watching):
            if connection is not None:
                connection.close()
        self._watching = None

    def _attempt(self, at: Callable[[apsw.Connection], T]) -> T:
        try:
            return self._locks.patiently(lambda: at(self._opened()))
        except apsw.Error as error:
            raise unavailable(error, self._folder) from error

    def _opened(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = open_reader(self._folder)
        return self._connection
