"""What passes between a worker and a child: a length, in answers a tag, and a body."""

# By name, since code of a playbook may replace what the module holds.
from os import _exit, read, write, writev

AGAIN, LAST, FAILED, FAILED_WITH_STRAYS = b"A", b"L", b"F", b"S"
"""The tag of an answer: whether it is a result, and whether the child may be used again."""
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


def send(control: int, tag: bytes, body: bytes) -> None:
    head = len(body).to_bytes(4, "big") + tag
    sent = writev(control, (head, body))  # the head is shorter than any buffer
    rest = memoryview(body)[sent - len(head) :]
    while rest:
        rest = rest[write(control, rest) :]
