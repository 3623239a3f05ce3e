"""A Snowflake on loopback: fakesnow in a process of its own."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from typing import Any

import msgspec

_PATIENCE = 600.0
_NAMES = count(1)


class SnowPlace(msgspec.Struct, frozen=True):
    """Where the server is, and a credential for a database of its own (KEY-1)."""

    port: int

    @property
    def credential(self) -> dict[str, Any]:
        return {
            "kind": "snowflake",
            "account": "loopback",
            "user": "noetl",
            "password": "loopback-only",
            "host": "127.0.0.1",
            "port": self.port,
            "protocol": "http",
            "database": f"test_{next(_NAMES)}",
            "schema": "public",
        }


@contextmanager
def serving() -> Iterator[SnowPlace]:
    """Its own process, because it warns and logs in its own way."""
    with closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.set_inheritable(True)
        port = int(listening.getsockname()[1])
        command = [sys.executable, "-W", "ignore", "-m", "uvicorn", "fakesnow.server:app"]
        options = ["--fd", str(listening.fileno()), "--log-level", "critical"]
        server = subprocess.Popen(
            [*command, *options],
            pass_fds=[listening.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    try:
        # Connections wait in the socket's queue until the server takes them.
        yield SnowPlace(port)
    finally:
        server.terminate()
        server.wait(_PATIENCE)
