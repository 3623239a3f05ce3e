"""
Where events hold values, and what those come to as JSON; each is written down once (decision 0094).
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from noetl.messages import events as e
from noetl.messages.codec import encode, encode_shown, is_plain
from noetl.messages.depth import DEEPEST, is_deep, too_deep
from noetl.messages.names import HELD
from noetl.messages.reference import Reference

WORTH = 16_384
"""Bytes of a value that is not written down twice in one decision."""
AROUND = 10
"""Levels that an event has around its values, and more."""

HOLDS: dict[type[e.Event], dict[str, str]] = {
    kind: {field: holds.moves for field, holds in held.items() if holds.moves != "stays"}
    for kind, held in HELD.items()
    if any(holds.moves != "stays" for holds in held.values())
}
"""Where an event holds values: one that moves as a whole, a mapping of such, or an error."""


class Slot(msgspec.Struct, frozen=True):
    """One value that may be moved: a field, or one key of it."""

    field: str
    key: str | None
    value: Any
    is_error: bool


def slots_of(event: e.Event) -> Iterator[Slot]:
    for field, how in HOLDS.get(type(event), {}).items():
        value = getattr(event, field)
        if how != "each":
            yield Slot(field, None, value, how == "error")
            continue
        outcome = field == "outcome"
        for key, below in (value or {}).items():
            yield Slot(field, key, below, outcome and key == "error")


def written(value: Any) -> bytes:
    return b"" if value is None or value is msgspec.UNSET else encode(value)


def hint_of(value: Any) -> str | None:
    """RES-1 `schema_hint`: what kind of value lies behind a reference."""
    if isinstance(value, list):
        return f"list[{len(value)}]"
    return "object" if isinstance(value, dict) else None


class Measured(NamedTuple):
    """An event as far as it must be known to fit it into the log."""

    size: int
    text: bytes
    """The event, but for values that are known not to be deep."""


class WrittenValue(NamedTuple):
    """A large value as it was written down."""

    value: Any
    """It is kept, so that no other value gets its place in memory."""
    body: bytes
    checksum: str
    is_simple: bool
    """Whether it is not deep and nothing in it looks like a reference: it is the same anywhere."""


class WrittenValues:
    """
    The large values of one decision. What comes with a request is in its first event and, the same
    value, in `workload`.
    """

    def __init__(self) -> None:
        self._known: dict[int, WrittenValue] = {}

    def body(self, value: Any) -> bytes:
        known = self._known.get(id(value))
        if known is not None:
            return known.body
        body = written(value)
        if len(body) > WORTH and not isinstance(value, Reference):
            simple = is_plain(body) and not is_deep(body, DEEPEST - AROUND)
            checksum = hashlib.sha256(body).hexdigest()
            self._known[id(value)] = WrittenValue(value, body, checksum, simple)
        return body

    def checksum(self, value: Any) -> str | None:
        known = self._known.get(id(value))
        return None if known is None else known.checksum

    def write(self, values: Iterable[Any], what: str) -> None:
        """Write down what somebody sent; ServerRefused where it is too deep for an event."""
        for value in values:
            try:
                deep = is_deep(self.body(value), DEEPEST - 2)
            except RecursionError:
                deep = True
            if deep:
                raise too_deep(what)

    def measured(self, event: e.Event) -> Measured:
        """Its size is that of `encode_shown`."""
        light, more = self._lightened(event) if self._known else (event, 0)
        text = encode_shown(light)
        return Measured(len(text) + more, text)

    def _lightened(self, event: e.Event) -> tuple[e.Event, int]:
        """The same without what was written down, and how many bytes that is."""
        light: dict[str, Any] = {}
        more = 0
        for slot in slots_of(event):
            known = self._known.get(id(slot.value))
            if known is None or not known.is_simple:
                continue
            more += len(known.body) - 1
            if slot.key is None:
                light[slot.field] = 0
            else:
                before = light.get(slot.field) or dict(getattr(event, slot.field))
                light[slot.field] = {**before, slot.key: 0}
        return (msgspec.structs.replace(event, **light) if light else event), more
