"""What passes between a worker and a child: a length, in answers a tag, and a body."""

# By name, since code of a playbook may replace what the module holds.
from os import _exit, read, write, writev
from time import monotonic

AGAIN, LAST, FAILED, FAILED_WITH_STRAYS = b"A", b"L", b"F", b"S"
"""The tag of an answer: whether it is a result, and whether the child may be used again."""
QUICK, SOON = b"Q", b"P"
"""A result, like AGAIN, of code that touches nothing and is over soon: more of it may queue."""
LONGEST = 256 * 1024 * 1024
"""Bytes of a result; more belongs into a file or a store."""


def receive(control: int) -> bytes:
    """The next request; where there is none any more, this is the end."""
    piece = read(control, 65_536)
    if not piece:
        _exit(0)
    length = int.from_bytes(piece[:4], "big") + 4
    pieces, missing = [piece], length - len(piece)
    while missing > 0:
        piece = read(control, min(missing, 1_048_576))
        if not piece:
            _exit(0)
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)[4:]


class Frames:
    """Requests that came together, and answers that leave together, at most `WAIT` seconds late."""

    WAIT, MOST = 0.0005, 32_768

    def __init__(self, control: int) -> None:
        self._control = control
        self._come = b""
        self._made: list[bytes] = []
        self._size, self._since = 0, 0.0

    def receive(self) -> bytes:
        """The next request; what was answered is sent before this waits for one."""
        come = self._come
        while len(come) < 4:
            come += self._more(65_536)
        length = int.from_bytes(come[:4], "big") + 4
        if len(come) < length:
            pieces, missing = [come], length - len(come)
            while missing > 0:
                pieces.append(self._more(min(max(missing, 65_536), 1_048_576)))
                missing -= len(pieces[-1])
            come = b"".join(pieces)
        self._come = come[length:]
        return come[4:length]

    def _more(self, most: int) -> bytes:
        self.flush()
        piece = read(self._control, most)
        if not piece:
            _exit(0)
        return piece

    def send(self, tag: bytes, body: bytes) -> None:
        """Answer; at once unless another request is here already, and both are about nothing."""
        if tag not in (QUICK, SOON) or len(body) > self.MOST:
            self.flush()
            send(self._control, tag, body)
            return
        self._made += (len(body).to_bytes(4, "big"), tag, body)
        self._size += len(body)
        if not self._come or self._size > self.MOST:
            self.flush()
        elif len(self._made) == 3:
            self._since = monotonic()
        elif monotonic() - self._since > self.WAIT:
            self.flush()

    def flush(self) -> None:
        if self._made:
            rest = memoryview(b"".join(self._made))
            self._made, self._size = [], 0
            while rest:
                rest = rest[write(self._control, rest) :]


def send(control: int, tag: bytes, body: bytes) -> None:
    head = len(body).to_bytes(4, "big") + tag
    sent = writev(control, (head, body))  # the head is shorter than any buffer
    rest = memoryview(body)[sent - len(head) :]
    while rest:
        rest = rest[write(control, rest) :]
