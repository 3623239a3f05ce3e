"""What a place for objects has to offer, so that bodies can lie there."""

import time
from collections.abc import Callable, Iterator
from typing import IO, Protocol, TypeVar

from noetl.errors import LogUnavailable

PATIENCE = 60.0
"""Seconds for which a place that is away is tried again."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0

T = TypeVar("T")


class Away(Exception):
    """The place does not answer now; later it may."""


class Refused(Exception):
    """The place answered, and said no."""


class Shelf(Protocol):
    """
    Objects by key. No method awaits; threads may call them at the same time.

    `write` is all or nothing; `read` gives pieces of any size. Both, and `size`, raise
    FileNotFoundError for what is not there, and LogUnavailable where the place is away for long.
    """

    name: str
    """What references say (RES-1)."""
    place: str
    """For messages."""

    def size(self, key: str) -> int: ...

    def write(self, key: str, body: IO[bytes]) -> None: ...

    def read(self, key: str) -> Iterator[bytes]: ...

    def keys(self, prefix: str) -> list[str]: ...

    def remove(self, key: str) -> None: ...

    def close(self) -> None: ...


def tried(place: str, act: Callable[[], T], *, patience: float = PATIENCE) -> T:
    """Do it, and again while the place is away and there is patience left."""
    pause, until = FIRST_PAUSE, time.monotonic() + patience
    while True:
        try:
            return act()
        except Refused as refused:
            raise unavailable(place, refused) from None
        except Away as away:
            if time.monotonic() + pause > until:
                raise unavailable(place, away) from None
        time.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


def unavailable(place: str, why: Exception) -> LogUnavailable:
    return LogUnavailable(
        f"a result cannot be stored in or read from {place}: {why}; check the store and its "
        "settings, and try again"
    )
