"""Lists in pages: where the page before ended, as a text that means nothing to its bearer."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from noetl.errors import ServerRefused

T = TypeVar("T")
LARGEST = 2**63 - 1


def cursor_of(place: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def place_in(cursor: str | None, type: type[T]) -> T | None:
    """The place that a cursor stands for; None without one."""
    if cursor is None:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), "-_", validate=True)
        place = msgspec.json.decode(text, type=type)
    except (binascii.Error, ValueError):
        place = None
    if place is None or "\x00" in str(place) or not is_kept(place):
        raise ServerRefused(
            "the cursor is not one of this list: expected `next` of the page before",
            code="cursor",
            status=400,
        )
    return place


def is_kept(place: Any) -> bool:
    """Whether a store could hold it: no number there is larger."""
    return not isinstance(place, int) or -LARGEST <= place <= LARGEST


def page_of(
    rows: Sequence[T], limit: int, place: Callable[[T], Any]
) -> tuple[Sequence[T], str | None]:
    """The rows to show and the cursor behind them, of `limit + 1` rows or fewer."""
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], cursor_of(place(rows[limit - 1]))
