"""Connections to one database, opened when needed, kept for the next call, at most `size`."""

import asyncio
import select
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection, ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from noetl.tools.paths import refuse_private
from noetl.tools.refusal import Refusal
from noetl.tools.sql.loading import json_adapters

Connection = AsyncConnection[TupleRow]

_FIELDS = {
    "host": "host",
    "port": "port",
    "user": "user",
    "username": "user",
    "password": "password",
    "database": "dbname",
    "dbname": "dbname",
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "options": "options",
}
"""Fields of a credential, and what the driver calls them; `dsn` says it all in one text."""
_SERVICES = frozenset({"service", "servicefile"})
_READ = ("sslrootcert", "sslcert", "sslkey", "sslcrl", "sslcrldir", "passfile")
"""Settings by which the driver reads a file; by `sslkeylogfile` it writes to one."""
_NO_FILE = "/nonexistent/pgpass"


def settings_of(credential: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What this credential says about connecting (KEY-1)."""
    settings = {
        theirs: credential[ours]
        for ours, theirs in _FIELDS.items()
        if credential.get(ours) is not None
    }
    if credential.get("dsn"):
        settings["conninfo"] = str(credential["dsn"])
    if not settings:
        expected = "expected host, port, user, password and database, or dsn"
        raise Refusal("auth", f"credential '{name}' names no database; {expected}")
    return settings


def without_the_worker_s_own(settings: Mapping[str, Any], name: str) -> dict[str, str]:
    """
    What keeps the driver from passwords that the worker's user has for himself (PGPASSWORD,
    .pgpass, .pg_service.conf): a playbook may name the server, and that would be shown them.
    """
    said = _said_in(str(settings.get("conninfo", "")))
    if not said.keys().isdisjoint(_SERVICES):
        says = f"the dsn of credential '{name}' names a service of the worker's user"
        raise Refusal("auth", f"{says}; expected host, port, user, password and database in it")
    if settings.get("password") or said.get("password"):
        return {}
    return {"password": "", "passfile": _NO_FILE}


def refuse_files(settings: Mapping[str, Any], name: str, private: Sequence[str]) -> None:
    """A playbook may say where the driver finds certificates; never where it writes, nor ours."""
    said = {**_said_in(str(settings.get("conninfo", ""))), **settings}
    if said.get("sslkeylogfile"):
        says = f"credential '{name}' names an sslkeylogfile, to which the driver would write"
        raise Refusal("auth", f"{says}; leave it out")
    for path in filter(None, map(said.get, _READ)):
        try:
            refuse_private(Path(str(path)).resolve(), str(path), private)
        except (OSError, ValueError, RuntimeError) as fault:  # a loop of links, a null byte
            says = f"credential '{name}' names a file that cannot be read"
            raise Refusal("auth", f"{says}: {fault}") from None


def _said_in(dsn: str) -> dict[str, Any]:
    try:
        return dict(conninfo_to_dict(dsn))
    except ProgrammingError:  # told when it is used
        return {}


class SqlConnections:
    """
    A pool that connects in the caller's own call.

    The driver's pool connects in the background and tries again until its timeout: a wrong
    password or a stopped server would show half a minute late, and without its reason.
    """

    def __init__(self, settings: Mapping[str, Any], size: int) -> None:
        self._settings = settings
        self._free = asyncio.Semaphore(size)
        self._idle: list[Connection] = []
        self._closed = False
        self._adapters = json_adapters()

    def lend(self, connect_timeout: float) -> "LentConnection":
        """A connection for one call; it is kept only if it is clean afterwards."""
        return LentConnection(self, connect_timeout)

    async def take(self, connect_timeout: float) -> Connection:
        await self._free.acquire()
        try:
            return await self._idle_one() or await self._connect(connect_timeout)
        except BaseException:
            self._free.release()
            raise

    async def take_back(self, connection: Connection) -> None:
        try:
            await self._keep(connection)
        finally:
            self._free.release()

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            await self._idle.pop().close()

    async def _connect(self, timeout: float) -> Connection:
        return await AsyncConnection.connect(
            **self._settings,
            autocommit=True,
            context=self._adapters,
            connect_timeout=max(1, round(timeout)),
        )

    async def _idle_one(self) -> Connection | None:
        """The one used last; a server that hung up meanwhile shows as something to read."""
        while self._idle:
            connection = self._idle.pop()
            if not (connection.closed or _readable(connection.fileno())):
                return connection
            await connection.close()
        return None

    async def _keep(self, connection: Connection) -> None:
        clean = connection.pgconn.transaction_status == TransactionStatus.IDLE
        if clean and not (self._closed or connection.closed):
            self._idle.append(connection)
        else:
            await connection.close()


class LentConnection:
    """One connection while a call has it."""

    def __init__(self, pool: SqlConnections, connect_timeout: float) -> None:
        self._pool = pool
        self._connect_timeout = connect_timeout

    async def __aenter__(self) -> Connection:
        self._connection = await self._pool.take(self._connect_timeout)
        return self._connection

    async def __aexit__(self, *_: object) -> None:
        await self._pool.take_back(self._connection)


def _readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
