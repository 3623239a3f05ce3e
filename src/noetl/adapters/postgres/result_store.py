"""
Bodies in the database of the log, in pieces that need little memory.

Over psycopg, not asyncpg as the log: the port asks for calls that do not await (`put_now`).
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import Any, TypeVar

import psycopg

from noetl.adapters.bodies import KEY, checked_id, describe, lost, opened, shape_of, verified
from noetl.adapters.postgres.door import FIRST_PAUSE, LONGEST_PAUSE
from noetl.adapters.postgres.faults import place_of
from noetl.adapters.postgres.statements import FOLDER, load
from noetl.errors import LogUnavailable
from noetl.messages.reference import Reference

STORE = "postgres"
PIECE = 262_144
IN_MEMORY = 4_194_304
MOST_IDLE = 4
PATIENCE = 60.0
SQL = load((FOLDER / "bodies.sql").read_text("utf-8"))

# The connection or the server is gone: come again.
AWAY = (psycopg.OperationalError, psycopg.InterfaceError)

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresBodyWriter:
    """BodyWriter; the pieces are set aside, and go into the database in one transaction."""

    def __init__(self, store: "PostgresResultStore", execution_id: str) -> None:
        self._store = store
        self._execution_id = execution_id
        self._aside: SpooledTemporaryFile[bytes] | None = None
        self._hash = hashlib.sha256()
        self._size = 0
        self._shape = "null"

    def write(self, piece: bytes) -> None:
        if not piece:
            return
        if self._aside is None:
            self._aside = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
            self._shape = shape_of(piece)
        try:
            self._aside.write(piece)
        except OSError as refused:
            self.discard_now()
            raise LogUnavailable(
                f"a result cannot be set aside: {refused.strerror or refused}; free space in the "
                "folder for temporary files, and try again"
            ) from refused
        self._hash.update(piece)
        self._size += len(piece)

    async def finish(self, schema_hint: str | None = None) -> Reference:
        return await asyncio.to_thread(self.finish_now, schema_hint or self._shape)

    async def discard(self) -> None:
        self.discard_now()

    def finish_now(self, schema_hint: str | None) -> Reference:
        """Store it under its checksum, unless it is there already."""
        checksum = self._hash.hexdigest()
        try:
            self._store.connected(lambda connection: self._keep(connection, checksum))
        finally:
            self.discard_now()
        key = f"{self._execution_id}/{checksum}"
        return Reference(STORE, key, self._size, checksum, schema_hint=schema_hint)

    def discard_now(self) -> None:
        """Leave nothing behind."""
        if self._aside is not None:
            self._aside.close()
            self._aside = None

    def _keep(self, connection: Connection, checksum: str) -> None:
        name = (self._execution_id, checksum)
        found = connection.execute(SQL["has_body"].encode(), name).fetchone()
        if found == (True,):
            return
        with connection.transaction():
            for number, piece in enumerate(self._pieces()):
                connection.execute(SQL["keep_piece"].encode(), (*name, number, piece))

    def _pieces(self) -> Iterator[bytes]:
        if self._aside is None:
            yield b""
            return
        self._aside.seek(0)
        while piece := self._aside.read(PIECE):
            yield piece


class PostgresResultStore:
    """ResultStore; see its contract. The tables must be there: the log's home makes them."""

    name = STORE

    def __init__(self, dsn: str, *, patience: float = PATIENCE) -> None:
        self._dsn = dsn
        self._patience = patience
        self._idle: list[Connection] = []
        self.place = place_of(dsn)

    async def put(self, execution_id: str, body: bytes) -> Reference:
        return await asyncio.to_thread(self.put_now, execution_id, body)

    def put_now(self, execution_id: str, body: bytes) -> Reference:
        writer, hint = self.open(execution_id), describe(body)
        writer.write(body)
        return writer.finish_now(hint)

    def open(self, execution_id: str) -> PostgresBodyWriter:
        return PostgresBodyWriter(self, checked_id(execution_id))

    async def fetch(self, reference: Reference) -> Any:
        return await asyncio.to_thread(self.fetch_now, reference)

    def fetch_now(self, reference: Reference) -> Any:
        return opened(reference, b"".join(self._read(reference)))

    def pieces(self, reference: Reference) -> Iterator[bytes]:
        return verified(reference, self._read(reference))

    async def remove(self, execution_id: str, keep: frozenset[str] = frozenset()) -> int:
        return await asyncio.to_thread(self._remove_now, checked_id(execution_id), keep)

    def close(self) -> None:
        """Let go of the connections."""
        while self._idle:
            self._idle.pop().close()

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

    def _read(self, reference: Reference) -> Iterator[bytes]:
        key = KEY.fullmatch(reference.key)
        if reference.store != STORE or key is None:
            lost(reference, "is not one of this store")
        number = 0
        while (piece := self.connected(partial(_piece, (key[1], key[2], number)))) is not None:
            yield piece
            number += 1
        if number == 0:
            lost(reference, f"cannot be read: it is not in {self.place}")

    def _remove_now(self, execution_id: str, keep: frozenset[str]) -> int:
        def remove(connection: Connection) -> int:
            found = connection.execute(SQL["bodies_of"].encode(), (execution_id,)).fetchall()
            gone = [name for (name,) in found if f"{execution_id}/{name}" not in keep]
            connection.execute(SQL["remove_bodies"].encode(), (execution_id, gone))
            return len(gone)

        return self.connected(remove)

    def _take(self) -> Connection:
        # Threads share the list; taking from it and adding to it are single steps of Python.
        with suppress(IndexError):
            return self._idle.pop()
        return psycopg.connect(self._dsn, autocommit=True, connect_timeout=10)

    def _give_back(self, connection: Connection) -> None:
        if len(self._idle) < MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def _unavailable(self, error: Exception) -> LogUnavailable:
        words = " ".join(str(error).split())
        return LogUnavailable(
            f"a result cannot be stored in or read from {self.place}: {words}; check the server "
            "and try again"
        )


def _piece(asked: tuple[str, str, int], connection: Connection) -> bytes | None:
    found = connection.execute(SQL["read_piece"].encode(), asked, binary=True).fetchone()
    return None if found is None else found[0]


def _close(connection: Connection | None) -> None:
    if connection is not None:
        with suppress(psycopg.Error):
            connection.close()
