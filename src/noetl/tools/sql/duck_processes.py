"""The processes that run DuckDB, seen from the worker: started, asked, let go."""

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from noetl.extras import is_installed
from noetl.tools.bounds import DEMANDED, Namespaces
from noetl.tools.children import ENVIRONMENT, INSIDE, end_all, spawn
from noetl.tools.framed_socket import FramedSocket, PeerGone
from noetl.tools.process.folders import Folders
from noetl.tools.process.inside.namespaces import UNCONFINED
from noetl.tools.refusal import Refusal, needs_extra
from noetl.tools.sql.duck_protocol import CONFINED, DuckRequest

PATIENCE = 2.0
"""Seconds that an interrupted query has to end; then its whole database ends."""
HANDED_ON = ("HOME", "TZ")
"""Variables that DuckDB reads: where its extensions lie, and what time it is here."""
PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from inside.namespaces import bind_to, confine; "
    "mode, control, worker = sys.argv[2], *map(int, sys.argv[3:5]); "
    "private, shown = (word.split('\\n') if word else [] for word in sys.argv[5:]); "
    "bind_to(confine(mode, worker, (0, 1, 2, control), private, shown, writes=True)); "
    "del sys.path[0]; "
    "from noetl.tools.sql.duck_child import nurse; nurse(control, mode)"
)


class DuckProcesses:
    """One process that the others are forked from; it is started with the first database."""

    def __init__(self, namespaces: Namespaces, private: Sequence[str]) -> None:
        self._namespaces = namespaces
        self._private = list(private)
        self._folders = Folders("duckdb")
        self._starting = asyncio.Lock()
        self._line: socket.socket | None = None
        self._process: Any = None
        self.folder = ""
        """Where files lie that worker and databases share, from the first start on."""
        self.free = False
        """Whether they are not confined, although they should be."""

    async def database(self) -> "DuckDatabase":
        """A new process for one database; raises Refusal, or OSError."""
        async with self._starting:
            for attempt in range(2):
                if self._line is None:
                    await self._start()
                assert self._line is not None, "it was started"
                ours, theirs = socket.socketpair()
                with theirs:
                    try:
                        socket.send_fds(self._line, [b"."], [theirs.fileno()])
                    except OSError:  # the first of them is gone
                        ours.close()
                        self._end()
                        if attempt:
                            raise
                        continue
                return DuckDatabase(ours)
        raise AssertionError("either it was started, or it raised")

    async def _start(self) -> None:
        if not is_installed("duckdb"):
            raise needs_extra("'duckdb'", "duckdb")
        self.folder = self._folders.new()
        ours, theirs = socket.socketpair()
        known = {name: os.environ[name] for name in HANDED_ON if name in os.environ}
        places = ("\n".join(self._private), self.folder)
        with theirs:
            control = theirs.fileno()
            words = (INSIDE, self._namespaces, str(control), str(os.getpid()), *places)
            program = (sys.executable, "-I", "-c", PROGRAM, *words)
            self._process = spawn(program, fds=(control,), cwd=self.folder, env=ENVIRONMENT | known)
        ours.setblocking(False)
        self._line = ours
        try:
            said = await asyncio.get_running_loop().sock_recv(ours, 1)
        except BaseException:
            self._end()
            raise
        if not said:
            code = self._process.wait()
            self._end()
            if code == UNCONFINED:
                raise Refusal("input", DEMANDED)
            raise OSError(f"the process of DuckDB ended with {code} before its first word")
        ours.setblocking(True)
        self.free = said != CONFINED

    def _end(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()
            end_all(self._process.pid)
            self._process.wait()
            shutil.rmtree(self.folder, ignore_errors=True)

    def close(self) -> None:
        self._end()
        self._folders.close()


class DuckDatabase:
    """One process, and the calls in it."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self.users = 0
        """Calls that are under way."""

    @asynccontextmanager
    async def ask(self, request: DuckRequest) -> AsyncIterator[AsyncIterator[tuple[bytes, Any]]]:
        """What a call is answered, tag by tag. Leaving it early interrupts the query."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._hand_over(theirs)
            asked = FramedSocket(ours)
            await asked.send(msgspec.msgpack.encode(request))
            yield self._told(asked)
        finally:
            await asyncio.shield(self._left(ours))

    def _hand_over(self, theirs: socket.socket) -> None:
        try:
            socket.send_fds(self._line, [b"."], [theirs.fileno()])
        except OSError:
            raise PeerGone from None

    async def _told(self, asked: FramedSocket) -> AsyncIterator[tuple[bytes, Any]]:
        while True:
            tag, body = await asked.receive()
            yield tag, msgspec.msgpack.decode(body)

    async def _left(self, ours: socket.socket) -> None:
        """A query that does not end when it is told to ends with its process."""
        try:
            with suppress(OSError):
                ours.shutdown(socket.SHUT_WR)
            async with asyncio.timeout(PATIENCE):
                while await asyncio.get_running_loop().sock_recv(ours, 65_536):
                    pass
        except (TimeoutError, ConnectionError):
            self.close()
        finally:
            ours.close()

    def close(self) -> None:
        """The process ends with it."""
        self._line.close()
