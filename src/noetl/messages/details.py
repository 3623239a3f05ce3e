"""
What of a JSON text takes long to read and to write, however few bytes it has?

msgspec reads and writes a text in one go and keeps the interpreter to itself meanwhile, in a thread
as well. A megabyte of text takes a millisecond, a megabyte of lists and keys fifty, and one in
numbers of 4,000 digits a hundred. So details are counted before a text from elsewhere is read
(decision 0094).
"""

from noetl.errors import ServerRefused

MOST_VALUES = 250_000
"""Of one request: elements, keys, lists and mappings. As keys they take 50 ms to read."""
MOST_REPORTED = 1_000_000
"""Of one report of a worker, which may have 10,000 events."""
MOST_BARE = 8 * 1024 * 1024
"""Bytes of a request that are in no text: numbers, marks, blanks."""
LONG = 200
"""Digits of a number that is a long one: to read or write it takes the square of them."""
MOST_LONG = 1000
"""So many times so many digits in a row may be in one JSON text."""
SLICE = 262_144
"""Bytes that are looked at in one go."""
AS_DIGITS = bytes(ord("0") if one in b"0123456789" else ord(" ") for one in range(256))
A_LONG_ONE = b"0" * LONG


class TooDetailed(ServerRefused):
    """A text of JSON that nobody reads."""

    def __init__(self, what: str) -> None:
        says = f"the JSON has more than {what}; send it as text (CSV, JSON in a string), or let a "
        super().__init__(f"{says}task read it from where it is", code="too_detailed", status=413)


class Details:
    """Counts them in whatever pieces a text comes. What is inside of strings is text."""

    def __init__(self, values: int = MOST_VALUES, bare: int | None = MOST_BARE) -> None:
        self._most_values, self._most_bare = values, bare
        self._values = self._long = self._bare = 0
        self._in_string = self._escaped = False
        self._run = b""
        """Digits at the end of the last piece, which may go on."""

    def count(self, piece: bytes) -> None:
        """Raises TooDetailed."""
        bare = self._outside(piece)
        self._bare += len(bare)
        self._values += bare.count(b",") + bare.count(b"[") + bare.count(b"{")
        if self._values > self._most_values:
            raise TooDetailed(f"{self._most_values:,} values")
        if self._most_bare is not None and self._bare > self._most_bare:
            raise TooDetailed(f"{self._most_bare:,} bytes outside of strings")
        digits = self._run + bare.translate(AS_DIGITS)
        self._long += digits.count(A_LONG_ONE)
        last = len(digits) - len(digits.rstrip(b"0"))
        self._run = b"0" * (last % LONG)  # of it, what was not counted
        if self._long > MOST_LONG:
            raise TooDetailed(f"{LONG * MOST_LONG:,} digits in numbers of {LONG} and more")

    def _outside(self, piece: bytes) -> bytes:
        """What of it is in no string. JSON has backslashes in strings alone."""
        if self._escaped:
            piece, self._escaped = piece[1:], not piece
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
            self._escaped = piece.endswith(b"\\")
        if b'"' not in piece:
            return b"" if self._in_string else piece
        parts = piece.split(b'"')
        bare = b" ".join(parts[self._in_string :: 2])
        self._in_string ^= len(parts) % 2 == 0
        return bare


def refuse_detailed(text: bytes, values: int = MOST_VALUES, bare: int | None = MOST_BARE) -> None:
    """The same for a text that is there as a whole."""
    details = Details(values, bare)
    for start in range(0, len(text), SLICE):
        details.count(text[start : start + SLICE])
