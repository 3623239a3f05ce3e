"""How what a child prints becomes lines: in order, bounded, whatever the bytes are."""

from collections.abc import Callable

from noetl.messages.clipping import without_end

STREAMS = {1: "stdout", 2: "stderr"}
HEAD = 3
"""Bytes before a piece in the pipe of Python's own streams: the stream and the length."""
MOST = 1_048_576
"""Bytes that are kept of one call."""


class Output:
    """
    The lines of one call.

    Three pipes feed it: what Python prints comes with its stream named, so the order is exact;
    what sub-processes and libraries write to descriptors 1 and 2 comes as it is.
    """

    def __init__(self, keep: Callable[[str, str], None], most: int = MOST) -> None:
        self._keep = keep
        self._room = most
        self._dropped = 0
        self._begun: dict[int, bytes] = {}
        """The line that each pipe has begun: 1, 2, and -1 and -2 for Python's own."""
        self._unread = b""
        self._cut: set[int] = set()
        """Pipes whose begun line lost its end: what is left of it may be half a secret."""

    def printed(self, data: bytes) -> None:
        """Pieces of Python's own streams; a piece may come in two parts."""
        data = self._unread + data
        start = 0
        while len(data) - start >= HEAD:
            end = start + HEAD + data[start + 1] * 256 + data[start + 2]
            if end > len(data):
                break
            self.written(-data[start], data[start + HEAD : end])
            start = end
        self._unread = data[start:]

    def written(self, pipe: int, data: bytes) -> None:
        """Bytes of one pipe, kept as far as there is room."""
        kept = data[: self._room]
        self._room -= len(kept)
        self._dropped += len(data) - len(kept)
        *lines, rest = (self._begun.get(pipe, b"") + kept).split(b"\n")
        for line in lines:
            self._line(pipe, line)
        self._begun[pipe] = rest
        if len(kept) < len(data):
            self._cut.add(pipe)

    def end(self) -> None:
        """No more comes: give out what no line break ended, and say what was dropped."""
        for pipe, rest in self._begun.items():
            if rest:
                self._line(pipe, rest, cut=pipe in self._cut)
        self._begun.clear()
        if self._dropped:
            self._keep("system", f"{self._dropped} further bytes of output were dropped")
            self._dropped = 0

    def _line(self, pipe: int, line: bytes, *, cut: bool = False) -> None:
        stream = STREAMS.get(abs(pipe), "stdout")
        text = line.removesuffix(b"\r").decode("utf-8", "replace")
        self._keep(stream, without_end(text) if cut else text)
