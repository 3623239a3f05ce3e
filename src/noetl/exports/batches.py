"""Pieces gathered into bodies: large enough to be worth a request, small enough to hold."""

from collections.abc import AsyncIterator, Callable

import msgspec

MOST = 5_000
MOST_BYTES = 1_048_576


class ExportBody(msgspec.Struct, frozen=True):
    """What one request carries, or one write."""

    content: bytes
    pieces: int


Joined = Callable[[list[bytes]], bytes]


def lines(pieces: list[bytes]) -> bytes:
    """One piece per line."""
    return b"\n".join(pieces) + b"\n"


async def bodies(
    pieces: AsyncIterator[bytes],
    joined: Joined = lines,
    *,
    most: int = MOST,
    most_bytes: int = MOST_BYTES,
) -> AsyncIterator[ExportBody]:
    """
    The pieces in their order, joined; a new body begins where one more would be too many.

    The next piece is read when the body before it was taken: a slow receiver slows the reading.
    """
    waiting: list[bytes] = []
    size = 0
    async for piece in pieces:
        if waiting and (len(waiting) >= most or size + len(piece) > most_bytes):
            yield ExportBody(joined(waiting), len(waiting))
            waiting, size = [], 0
        waiting.append(piece)
        size += len(piece)
    if waiting:
        yield ExportBody(joined(waiting), len(waiting))
