"""
The processes that run DuckDB: SQL of a playbook can end its own process and no other.

One process is started and confined, loads DuckDB, and is forked for every database; a database
has a thread for every call. All of them are told what to do by sockets that the worker hands
over: one for each database, one for each call. The end of a socket is the end of what it stands
for. The worker's side is `tools/sql/duck_processes.py`.
"""

import os
import resource
import select
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from noetl.tools.process.inside.frames import send
from noetl.tools.process.inside.landlock import version
from noetl.tools.process.inside.namespaces import fork_bound
from noetl.tools.refusal import Refusal
from noetl.tools.sql.commands import Params, ThreadedWork, no_statement
from noetl.tools.sql.duck_protocol import (
    CONFINED,
    DONE,
    FAILED,
    FREE,
    MEMORY,
    NAMES,
    REFUSED,
    ROWS,
    DuckFault,
    DuckRequest,
)
from noetl.tools.sql.values import distinct, json_text, plain

_CONFIG: dict[str, str | bool | int | float | list[str]] = {"autoinstall_known_extensions": "false"}
_LET_GO = 0x2000
"""Of poll(2): POLLRDHUP."""
_AGAIN = 50
"""Milliseconds: an interrupt before the query begins has no effect."""
_COUNTS = {("Count", "BIGINT"), ("Success", "BOOLEAN")}
"""How DuckDB answers a statement that has no rows to show."""
_UNREADABLE = ("TIME ZONE", "INTERVAL")
"""Types that the driver returns inexactly, or only with another package: read as text."""


def nurse(control: int, mode: str) -> None:
    """Fork for each socket that comes; what is loaded now, no database has to load."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    line = socket.socket(fileno=control)
    held = os.getppid() == 0 or version() > 0 or mode == "off"
    line.send(CONFINED if held else FREE)
    while True:
        word, given, *_ = socket.recv_fds(line, 1, 1)
        if not word:
            os._exit(0)
        if fork_bound() == 0:
            line.close()
            OneDatabase(socket.socket(fileno=given[0])).serve()
        os.close(given[0])


class OneDatabase:
    """The calls of one database; one in memory lives as long as the process."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._calls: dict[int, DuckCall] = {}
        self._lock = threading.Lock()
        self._base: duckdb.DuckDBPyConnection | None = None
        """The others are made from it: the library refuses a file that two threads open at once."""
        self._used = 0
        """Connections that calls have."""

    def serve(self) -> None:
        poll = select.poll()
        poll.register(self._line, select.POLLIN)
        while True:
            stopping = any(call.stopping for call in self._calls.values())
            for descriptor, _ in poll.poll(_AGAIN if stopping else None):
                if descriptor == self._line.fileno():
                    poll.register(self._begun(), _LET_GO)
                else:  # the worker wants no more of it, or it has said all
                    poll.unregister(descriptor)
                    self._calls[descriptor].stopping = True
            for descriptor, call in list(self._calls.items()):
                if call.stopping and call.over():
                    del self._calls[descriptor]

    def _begun(self) -> int:
        word, given, *_ = socket.recv_fds(self._line, 1, 1)
        if not word:
            os._exit(0)
        call = self._calls[given[0]] = DuckCall(given[0], self)
        call.thread.start()
        return given[0]

    def opened(self, asked: DuckRequest) -> duckdb.DuckDBPyConnection:
        """A connection for one call; it is opened and confined once for all of them."""
        with self._lock:
            if self._base is None:
                self._base = connected(asked)
            self._used += 1
            return self._base.cursor()

    def closed(self, asked: DuckRequest, connection: duckdb.DuckDBPyConnection) -> None:
        """A file is let go after the last call, so that other processes can use it."""
        with self._lock:
            connection.close()
            self._used -= 1
            if asked.path != MEMORY and not self._used and self._base is not None:
                self._base.close()
                self._base = None


def connected(asked: DuckRequest) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(asked.path, config=_CONFIG)
    if asked.root is not None:
        allowed = [str(Path(asked.root).resolve()), asked.spool]
        connection.execute("SET allowed_directories = $1", [allowed])
        connection.execute("SET temp_directory = $1", [tempfile.mkdtemp(dir=asked.spool)])
        connection.execute("SET enable_external_access = false")
    return connection


class DuckCall:
    """One call and the thread that answers it."""

    def __init__(self, descriptor: int, database: OneDatabase) -> None:
        self.stopping = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self._socket = socket.socket(fileno=descriptor)
        self._database = database
        self._connection: duckdb.DuckDBPyConnection | None = None

    def over(self) -> bool:
        """Whether its thread has ended; until then it is interrupted."""
        if self.thread.is_alive():
            if self._connection is not None:
                with suppress(duckdb.Error):  # it may have ended by itself, and be closed
                    self._connection.interrupt()
            return False
        self._socket.close()
        return True

    def _run(self) -> None:
        try:
            length = int.from_bytes(self._exactly(4), "big")
            asked = msgspec.msgpack.decode(self._exactly(length), type=DuckRequest)
            try:
                self._connection = self._database.opened(asked)
                self._answer(self._connection, asked)
            except Refusal as refusal:
                self._say(REFUSED, str(refusal))
            except duckdb.Error as fault:
                self._say(FAILED, DuckFault(type(fault).__name__, str(fault).strip()))
            finally:
                if self._connection is not None:
                    self._database.closed(asked, self._connection)
        except OSError:
            return  # the worker has let go
        finally:
            self._socket.shutdown(socket.SHUT_RDWR)

    def _answer(self, connection: duckdb.DuckDBPyConnection, asked: DuckRequest) -> None:
        for setting, value in asked.settings.items():
            connection.execute(f"SET {setting} = $1", [value])
        work = DuckWork(connection, asked.text, asked.params, asked.view)
        work.run()
        if work.rowcount is None:
            self._say(NAMES, work.names)
            while more := work.more():
                self._say(ROWS, more)
        self._say(DONE, work.rowcount)

    def _exactly(self, length: int) -> bytearray:
        room = bytearray(length)
        filled = 0
        while filled < length:
            count = self._socket.recv_into(memoryview(room)[filled:])
            if not count:
                raise BrokenPipeError
            filled += count
        return room

    def _say(self, tag: bytes, value: Any) -> None:
        if self.stopping:
            raise BrokenPipeError
        send(self._socket.fileno(), tag, msgspec.msgpack.encode(value))


class DuckWork(ThreadedWork):
    """Runs the statements of a command, after the one that makes the view of its rows."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, text: str, params: Params, view: str | None
    ) -> None:
        super().__init__(connection, text, params)
        self._view = view

    def run(self) -> None:
        statements = self._cursor.extract_statements(self._text)
        if not statements:
            raise no_statement()
        shares = dealt(statements, self._params)
        if self._view is not None:
            self._cursor.execute(self._view)
        for statement, share in zip(statements, shares, strict=True):
            self._cursor.execute(statement, share)
        self._look_at(statements[-1], shares[-1])

    def _look_at(self, last: duckdb.Statement, share: Params) -> None:
        columns = [(str(name), str(kind)) for name, kind, *_ in self._cursor.description or ()]
        if last.type != duckdb.StatementType.SELECT and (not columns or columns[0] in _COUNTS):
            counted = self._cursor.fetchall() if columns else []
            self.rowcount = sum(row[0] for row in counted if type(row[0]) is int)
            return
        self.names = distinct(name for name, _ in columns)
        kinds = [kind for _, kind in columns]
        hidden = [any(part in kind for part in _UNREADABLE) for kind in kinds]
        if last.type == duckdb.StatementType.SELECT and any(hidden):
            self._cursor.execute(spelled_out(last.query, hidden), share)
        else:
            hidden = [False] * len(kinds)
        self._readers = [
            _spelled(kind) if spelled else json_text if kind == "JSON" else plain
            for kind, spelled in zip(kinds, hidden, strict=True)
        ]


def spelled_out(query: str, hidden: Sequence[bool]) -> str:
    """The same rows, with the columns that the driver cannot read exactly as JSON text."""
    names = [f"c{number}" for number in range(len(hidden))]
    shown = [
        f"to_json({name})::varchar" if spell else name
        for name, spell in zip(names, hidden, strict=True)
    ]
    source = query.strip().rstrip(";")
    return f"select {', '.join(shown)} from (\n{source}\n) _ ({', '.join(names)})"


def dealt(statements: Sequence[duckdb.Statement], params: Params) -> list[Params]:
    """Each statement's own parameters: by name, or as many of the list as it has places for."""
    if len(statements) == 1:
        return [params]
    if isinstance(params, dict):
        return [
            {name: value for name, value in params.items() if name in statement.named_parameters}
            for statement in statements
        ]
    shares, rest = [], list(params)
    for statement in statements:
        places = len(statement.named_parameters)
        shares.append(rest[:places])
        rest = rest[places:]
    if rest:
        says = f"'params' has {len(rest)} more values than the statements have places"
        raise Refusal("input", says)
    return list(shares)


def _spelled(kind: str) -> Callable[[Any], Any]:
    return _moment if kind == "TIMESTAMP WITH TIME ZONE" else json_text


def _moment(value: Any) -> Any:
    text = json_text(value)
    try:
        return text and datetime.fromisoformat(text).isoformat()
    except ValueError:  # infinity, or a year that Python's calendar does not know
        return text
