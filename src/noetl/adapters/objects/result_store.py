"""Bodies as objects: in a bucket of S3 or Google, or in the object store of NATS (RES-1)."""

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import suppress
from tempfile import SpooledTemporaryFile
from typing import Any

from noetl.adapters.bodies import KEY, checked_id, describe, lost, opened, shape_of, verified
from noetl.adapters.objects.shelf import Refused, Shelf, unavailable
from noetl.errors import LogUnavailable
from noetl.messages.reference import Reference

IN_MEMORY = 4_194_304
PIECE = 262_144


class ObjectBodyWriter:
    """BodyWriter; the pieces are set aside until it is known under which key they go."""

    def __init__(self, shelf: Shelf, execution_id: str) -> None:
        self._shelf = shelf
        self._execution_id = execution_id
        self._aside: SpooledTemporaryFile[bytes] = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
        self._hash = hashlib.sha256()
        self._size = 0
        self._shape = "null"

    def write(self, piece: bytes) -> None:
        if not self._size and piece:
            self._shape = shape_of(piece)
        try:
            self._aside.write(piece)
        except OSError as refused:
            self._aside.close()
            raise LogUnavailable(
                f"a result cannot be set aside: {refused.strerror or refused}; free space in the "
                "folder for temporary files, and try again"
            ) from refused
        self._hash.update(piece)
        self._size += len(piece)

    async def finish(self, schema_hint: str | None = None) -> Reference:
        return await asyncio.to_thread(self.finish_now, schema_hint or self._shape)

    async def discard(self) -> None:
        self._aside.close()

    def finish_now(self, schema_hint: str | None) -> Reference:
        """Store it under its checksum, unless it is there already."""
        checksum = self._hash.hexdigest()
        key = f"{self._execution_id}/{checksum}"
        try:
            if self._stored(key) != self._size:
                self._shelf.write(key, self._aside)
        except FileNotFoundError:  # what is written needs nothing but a bucket
            nowhere = Refused("there is no such bucket")
            raise unavailable(self._shelf.place, nowhere) from None
        finally:
            self._aside.close()
        return Reference(self._shelf.name, key, self._size, checksum, schema_hint=schema_hint)

    def _stored(self, key: str) -> int | None:
        try:
            return self._shelf.size(key)
        except FileNotFoundError:
            return None


class ObjectResultStore:
    """ResultStore; see its contract."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    @property
    def name(self) -> str:
        return self._shelf.name

    async def put(self, execution_id: str, body: bytes) -> Reference:
        return await asyncio.to_thread(self.put_now, execution_id, body)

    def put_now(self, execution_id: str, body: bytes) -> Reference:
        writer, hint = self.open(execution_id), describe(body)
        writer.write(body)
        return writer.finish_now(hint)

    def open(self, execution_id: str) -> ObjectBodyWriter:
        return ObjectBodyWriter(self._shelf, checked_id(execution_id))

    async def fetch(self, reference: Reference) -> Any:
        return await asyncio.to_thread(self.fetch_now, reference)

    def fetch_now(self, reference: Reference) -> Any:
        return opened(reference, b"".join(self._read(reference)))

    def pieces(self, reference: Reference) -> Iterator[bytes]:
        return verified(reference, self._read(reference))

    async def remove(self, execution_id: str, keep: frozenset[str] = frozenset()) -> int:
        return await asyncio.to_thread(self._remove_now, checked_id(execution_id), keep)

    def close(self) -> None:
        self._shelf.close()

    def _read(self, reference: Reference) -> Iterator[bytes]:
        if reference.store != self.name or KEY.fullmatch(reference.key) is None:
            lost(reference, "is not one of this store")
        try:
            for piece in self._shelf.read(reference.key):
                for start in range(0, len(piece), PIECE):
                    yield piece[start : start + PIECE]
        except FileNotFoundError:
            lost(reference, f"cannot be read: it is not in {self._shelf.place}")

    def _remove_now(self, execution_id: str, keep: frozenset[str]) -> int:
        gone = 0
        with suppress(FileNotFoundError):  # no bucket: nothing to remove
            for key in self._shelf.keys(f"{execution_id}/"):
                gone += key not in keep and self._removed(key)
        return gone

    def _removed(self, key: str) -> bool:
        """Whether this was the one who removed it."""
        try:
            self._shelf.remove(key)
        except FileNotFoundError:
            return False
        return True
