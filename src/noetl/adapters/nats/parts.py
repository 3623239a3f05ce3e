"""Messages larger than the server lets pass: cut into parts, and joined again."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping

PART = "Noetl-Part"
"""Header `2/5`: the second of five parts of one message. Small ones have no such header."""
MARGIN = 1024
"""The limit of the server counts headers too."""
ROOM = 256 * 1024 * 1024
"""Bytes of unfinished messages that are kept; beyond it the oldest is forgotten."""
EACH = 512
"""Bytes that one part takes beside its own: any number of empty ones would cost nothing."""

Part = tuple[bytes, dict[str, str] | None]


def parts_of(payload: bytes, largest: int) -> Iterator[Part]:
    """The payload in parts that pass; most messages are one."""
    most = max(largest - MARGIN, MARGIN)
    if len(payload) <= most:
        yield payload, None
        return
    count = -(-len(payload) // most)
    for number in range(count):
        piece = payload[number * most : (number + 1) * most]
        yield piece, {PART: f"{number + 1}/{count}"}


class MessageParts:
    """Parts that wait for the others. Parts may come twice, and in any order (T10)."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._open: OrderedDict[str, dict[int, bytes]] = OrderedDict()
        self._size = 0

    @property
    def count(self) -> int:
        """Parts that wait."""
        return sum(map(len, self._open.values()))

    def join(self, key: str, piece: bytes, headers: Mapping[str, str] | None) -> bytes | None:
        """The whole message, once all its parts are here; ValueError if the header is rubbish."""
        mark = headers.get(PART) if headers else None
        if mark is None:
            return piece
        number, count = (int(word) for word in mark.split("/"))
        if not 1 <= number <= count:
            raise ValueError(f"part {mark} cannot be")
        parts = self._open.setdefault(key, {})
        known = parts.get(number)
        self._size += len(piece) + EACH if known is None else len(piece) - len(known)
        parts[number] = piece
        if len(parts) < count:
            self._make_room()
            return None
        self.forget(key)
        return b"".join(parts[each] for each in sorted(parts))

    def forget(self, key: str) -> None:
        """Nobody waits for this one any more."""
        self._size -= sum(len(piece) + EACH for piece in self._open.pop(key, {}).values())

    def _make_room(self) -> None:
        while self._size > self._room and self._open:
            self.forget(next(iter(self._open)))
