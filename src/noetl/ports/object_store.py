"""Where objects are kept by key: in files, a bucket, a database, or at a server (RES-1)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from io import BytesIO
from typing import IO, Protocol, runtime_checkable

PIECE = 262_144
"""Bytes that are read or written at a time."""
IN_MEMORY = 4_194_304
"""Bytes of a body under way that are kept in memory; the rest goes into a temporary file."""


class StoreAway(Exception):
    """The store does not answer now; later it may."""


class StoreRefused(Exception):
    """The store answered no (disk full, no permission, no bucket): asking again is no use."""


class Spool:
    """A body on its way to a store: in memory while it is small, then in a temporary file."""

    def __init__(self, body: bytes | None = None) -> None:
        self.size = 0 if body is None else len(body)
        self.file: IO[bytes] = _temporary() if body is None else BytesIO(body)
        self._grows = body is None

    def write(self, piece: bytes) -> None:
        self.file.write(piece)
        self.size += len(piece)

    async def pieces(self, length: int = PIECE) -> AsyncIterator[bytes]:
        """From the start; another attempt begins again."""
        for start in range(0, self.size, length):
            if self._grows and self.size > IN_MEMORY:
                yield await asyncio.to_thread(self._at, start, length)
            else:
                yield self._at(start, length)

    def _at(self, start: int, length: int) -> bytes:
        self.file.seek(start)
        return self.file.read(length)


class ObjectStore(Protocol):
    """
    Contract, checked for every adapter by tests/contracts/test_object_store.py:
    - no method blocks the event loop; many may be under way at once;
    - a key is `<execution>/<checksum>`, and the object behind it never changes;
    - `put` is all or nothing, and returns when the object is durable; an object that is there
      whole need not be written again;
    - `get` gives the bytes from `start` on, in pieces of at most PIECE bytes; it raises
      FileNotFoundError where there is no such object;
    - `keys` finds the objects of one execution (`<execution>/`), and its cost does not depend on
      how many others there are;
    - `remove` returns how many objects it removed; one that is gone already is no error, and may
      be counted;
    - what fails raises StoreAway or StoreRefused. Nothing is tried twice here: patience is the
      caller's.
    """

    name: str
    """What references say (RES-1)."""
    place: str
    """For messages."""

    async def put(self, key: str, body: Spool) -> None: ...

    def get(self, key: str, start: int = 0) -> AsyncIterator[bytes]: ...

    async def keys(self, prefix: str) -> list[str]: ...

    async def remove(self, keys: Sequence[str]) -> int: ...

    async def close(self) -> None: ...


@runtime_checkable
class HeldStore(Protocol):
    """A store that servers make, and keep as it is to be; workers have no right to."""

    async def hold(self, says: Callable[[str], None]) -> None:
        """Until cancelled."""


def _temporary() -> IO[bytes]:
    from tempfile import SpooledTemporaryFile  # with all that packs archives

    return SpooledTemporaryFile(max_size=IN_MEMORY)
