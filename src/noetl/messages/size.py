"""How large a value is, roughly and without writing it down."""

from typing import Any

PATIENCE = 5_000
"""Values looked at before the rest is estimated from them."""


def rough_size(value: Any) -> int:
    """About as many bytes as the value's JSON has; costs no more than PATIENCE looks."""
    kind = type(value)
    if kind is str:
        return len(value) + 2
    if kind is not dict and kind is not list:
        return 8
    size, looked, pending = 2, 0, [value]
    while pending and looked < PATIENCE:
        part = pending.pop()
        looked += 1
        kind = type(part)
        if kind is str:
            size += len(part) + 3
        elif kind is dict:
            size += sum(len(key) + 4 for key in part)
            pending.extend(part.values())
        elif kind is list:
            size += len(part)
            pending.extend(part)
        else:
            size += 8
    if pending:  # as large as what was seen, on the average
        size += len(pending) * max(8, size // looked)
    return size
