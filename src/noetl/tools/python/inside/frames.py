"""What passes between worker and child: a length, a tag, a body of bounded size."""

AGAIN, LAST, FAILED, FAILED_WITH_STRAYS = b"A", b"L", b"F", b"S"
"""The tag of an answer: whether it is a result, and whether the child may be used again."""
LONGEST = 256 * 1024 * 1024
"""Bytes of a result; more belongs into a file or a store."""
