"""Reads a stream of server-sent events from pieces of bytes, as they come."""

from collections.abc import Iterator
from urllib.parse import quote

import msgspec

from noetl.api.types import EventView
from noetl.client.asks import Ask
from noetl.errors import ServerRefused

LONGEST = 64 * 1024 * 1024
"""Bytes that one message may have: a stream that never ends one is refused, not collected."""


class Messages:
    """The bytes of one connection; `take` gives the events that they complete."""

    def __init__(self) -> None:
        self._rest = b""
        self._told: list[bytes] = []
        self._name = ""
        self._size = 0

    def take(self, piece: bytes) -> Iterator[EventView]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            event = self._line(line.removesuffix(b"\r"))
            if event is not None:
                yield event
        if len(self._rest) + self._size > LONGEST:
            raise ServerRefused("the stream holds a message without an end", code="unreadable")

    def _line(self, line: bytes) -> EventView | None:
        if not line:
            return self._complete()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._told.append(value)
            self._size += len(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        return None

    def _complete(self) -> EventView | None:
        told, self._told, self._size = b"\n".join(self._told), [], 0
        name, self._name = self._name, ""
        if not told or name == "end":
            return None
        try:
            return msgspec.json.decode(told, type=EventView)
        except msgspec.DecodeError as wrong:
            raise ServerRefused(f"the stream cannot be read: {wrong}", code="unreadable") from None


LAST = "playbook.processed"
"""The event with which every log ends."""


def stream_ask(execution_id: str, after: int) -> Ask[None]:
    """The events after a `seq`, and those that come."""
    return Ask(
        method="GET",
        path=f"/api/executions/{quote(execution_id, safe='')}/stream",
        query={"after": after},
        headers={"Accept": "text/event-stream"},
        answer=None,
    )
