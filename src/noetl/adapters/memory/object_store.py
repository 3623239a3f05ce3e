"""Objects in memory, for simulations and tests."""

from collections.abc import AsyncIterator, Sequence

from noetl.ports.object_store import PIECE, Spool


class MemoryObjectStore:
    """See `ObjectStore`."""

    name = "memory"
    place = "memory"

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    async def put(self, key: str, body: Spool) -> None:
        self.kept[key] = b"".join([piece async for piece in body.pieces()])

    async def get(self, key: str, start: int = 0) -> AsyncIterator[bytes]:
        if key not in self.kept:
            raise FileNotFoundError(key)
        body = self.kept[key]
        for at in range(start, len(body), PIECE):
            yield body[at : at + PIECE]

    async def keys(self, prefix: str) -> list[str]:
        return [key for key in self.kept if key.startswith(prefix)]

    async def remove(self, keys: Sequence[str]) -> int:
        return sum(self.kept.pop(key, None) is not None for key in keys)

    async def close(self) -> None:
        """Nothing is held open."""
