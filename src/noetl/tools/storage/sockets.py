"""The sockets of one session of `requests`, so that a call that waits can be ended (TASK-7)."""

import socket
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from requests import Session
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool


class Sockets:
    """Knows every connection that the session opens."""

    def __init__(self) -> None:
        self._open: WeakSet[Any] = WeakSet()
        self._cut = False

    def watch(self, session: Session) -> None:
        """From now on requests of the session go over connections that can be cut."""
        adapter = HTTPAdapter()
        adapter.poolmanager.pool_classes_by_scheme = {
            "http": self._watched(HTTPConnectionPool, HTTPConnection),
            "https": self._watched(HTTPSConnectionPool, HTTPSConnection),
        }
        session.mount("http://", adapter)
        session.mount("https://", adapter)

    def cut(self) -> None:
        """Who waits for a byte of these connections waits no longer."""
        self._cut = True
        for connection in list(self._open):
            if connection.sock is not None:
                with suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)

    def _watched(self, pool: type[Any], connection: type[Any]) -> type[Any]:
        def connect(opening: Any) -> None:
            if self._cut:
                raise ConnectionAbortedError("the call was ended")
            connection.connect(opening)
            self._open.add(opening)

        watched = type(connection.__name__, (connection,), {"connect": connect})
        return type(pool.__name__, (pool,), {"ConnectionCls": watched})
