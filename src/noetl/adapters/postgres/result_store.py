"""Bodies in the database of the log, in pieces that need little memory."""

import asyncio
import hashlib
from collections.abc import Iterator
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import Any

from noetl.adapters.bodies import KEY, checked_id, describe, lost, opened, shape_of, verified
from noetl.adapters.postgres.blocking import BlockingDoor, Connection
from noetl.adapters.postgres.statements import FOLDER, load
from noetl.errors import LogUnavailable
from noetl.messages.reference import Reference

STORE = "postgres"
PIECE = 262_144
IN_MEMORY = 4_194_304
PATIENCE = 60.0
SQL = load((FOLDER / "bodies.sql").read_text("utf-8"))


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
            self._store.door.connected(lambda connection: self._keep(connection, checksum))
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
        self.door = BlockingDoor(dsn, patience=patience, what="a result")

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
        self.door.close()

    def _read(self, reference: Reference) -> Iterator[bytes]:
        key = KEY.fullmatch(reference.key)
        if reference.store != STORE or key is None:
            lost(reference, "is not one of this store")
        number = 0
        while (piece := self.door.connected(partial(_piece, (key[1], key[2], number)))) is not None:
            yield piece
            number += 1
        if number == 0:
            lost(reference, f"cannot be read: it is not in {self.door.place}")

    def _remove_now(self, execution_id: str, keep: frozenset[str]) -> int:
        def remove(connection: Connection) -> int:
            found = connection.execute(SQL["bodies_of"].encode(), (execution_id,)).fetchall()
            gone = [name for (name,) in found if f"{execution_id}/{name}" not in keep]
            connection.execute(SQL["remove_bodies"].encode(), (execution_id, gone))
            return len(gone)

        return self.door.connected(remove)


def _piece(asked: tuple[str, str, int], connection: Connection) -> bytes | None:
    found = connection.execute(SQL["read_piece"].encode(), asked, binary=True).fetchone()
    return None if found is None else found[0]
