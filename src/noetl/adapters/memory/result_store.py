"""Bodies in memory, for simulations and tests."""

import hashlib
from collections.abc import Iterator
from typing import Any

from noetl.adapters.bodies import checked_id, describe, lost, opened, shape_of, verified
from noetl.messages.reference import Reference

STORE = "memory"
PIECE = 65_536


class MemoryBodyWriter:
    """BodyWriter; nothing is visible before `finish`."""

    def __init__(self, bodies: dict[str, bytes], execution_id: str) -> None:
        self._bodies = bodies
        self._execution_id = execution_id
        self._written = bytearray()

    def write(self, piece: bytes) -> None:
        self._written += piece

    async def finish(self, schema_hint: str | None = None) -> Reference:
        return self.finish_now(schema_hint)

    def finish_now(self, schema_hint: str | None) -> Reference:
        """The same without awaiting."""
        body = bytes(self._written)
        checksum = hashlib.sha256(body).hexdigest()
        key = f"{self._execution_id}/{checksum}"
        self._bodies[key] = body
        hint = schema_hint or shape_of(body)
        return Reference(STORE, key, len(body), checksum, schema_hint=hint)

    async def discard(self) -> None:
        self._written.clear()


class MemoryResultStore:
    """ResultStore; see its contract."""

    name = STORE

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}

    async def put(self, execution_id: str, body: bytes) -> Reference:
        return self.put_now(execution_id, body)

    def put_now(self, execution_id: str, body: bytes) -> Reference:
        writer = self.open(execution_id)
        writer.write(body)
        return writer.finish_now(describe(body))

    def open(self, execution_id: str) -> MemoryBodyWriter:
        return MemoryBodyWriter(self.bodies, checked_id(execution_id))

    async def fetch(self, reference: Reference) -> Any:
        return self.fetch_now(reference)

    def fetch_now(self, reference: Reference) -> Any:
        if reference.store != STORE or reference.key not in self.bodies:
            lost(reference, "is not one of this store")
        return opened(reference, self.bodies[reference.key])

    def pieces(self, reference: Reference) -> Iterator[bytes]:
        body = self.bodies.get(reference.key)
        if reference.store != STORE or body is None:
            lost(reference, "is not one of this store")
        return verified(reference, (body[at : at + PIECE] for at in range(0, len(body), PIECE)))

    def close(self) -> None:
        """Nothing is held open."""

    async def remove(self, execution_id: str, keep: frozenset[str] = frozenset()) -> int:
        start = f"{checked_id(execution_id)}/"
        gone = [key for key in self.bodies if key.startswith(start) and key not in keep]
        for key in gone:
            del self.bodies[key]
        return len(gone)
