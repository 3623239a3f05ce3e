"""
Connections for calls that do not await, each used by one call at a time.

Over psycopg, not asyncpg as the log: some ports ask for calls that do not await (`put_now`).
"""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import psycopg

from noetl.adapters.postgres.door import FIRST_PAUSE, LONGEST_PAUSE
from noetl.adapters.postgres.faults import place_of
from noetl.errors import LogUnavailable

MOST_IDLE = 4
LONGEST_CONNECT = 10

# The connection or the server is gone: come again.
AWAY = (psycopg.OperationalError, psycopg.InterfaceError)

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]


class BlockingDoor:
    """The way to one database for calls that wait; `what` is the subject of its complaints."""

    def __init__(self, dsn: str, *, patience: float, what: str) -> None:
        self.place = place_of(dsn)
        self._dsn = dsn
        self._patience = patience
        self._what = what
        self._idle: list[Connection] = []

    def connected(self, act: Callable[[Connection], T]) -> T:
        """Do it on a connection of this call's own; again, if the server was away meanwhile."""
        pause, until = FIRST_PAUSE, time.monotonic() + self._patience
        while True:
            connection: Connection | None = None
            try:
                connection = self._take()
                answer = act(connection)
            except AWAY as away:
                _close(connection)
                if time.monotonic() + pause > until:
                    raise self._unavailable(away) from away
            except BaseException as error:
                _close(connection)
                if isinstance(error, psycopg.Error):
                    raise self._unavailable(error) from error
                raise
            else:
                self._give_back(connection)
                return answer
            time.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def close(self) -> None:
        """Let go of the connections."""
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> Connection:
        # Threads share the list; taking from it and adding to it are single steps of Python.
        with suppress(IndexError):
            return self._idle.pop()
        return psycopg.connect(self._dsn, autocommit=True, connect_timeout=LONGEST_CONNECT)

    def _give_back(self, connection: Connection) -> None:
        if len(self._idle) < MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def _unavailable(self, error: Exception) -> LogUnavailable:
        words = " ".join(str(error).split())
        return LogUnavailable(
            f"{self._what} cannot be stored in or read from {self.place}: {words}; check the "
            "server and try again"
        )


def _close(connection: Connection | None) -> None:
    if connection is not None:
        with suppress(psycopg.Error):
            connection.close()
