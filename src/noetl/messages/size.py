"""How large a value is, roughly."""

from typing import Any

import msgspec

from noetl.messages.codec import encode_shown
from noetl.messages.reference import Reference

PATIENCE = 5_000
"""Values looked at before the rest is estimated from them."""

LONGEST = 65_536
"""Characters of JSON: of a longer one fewer values are looked at than it has."""


def rough_size(value: Any) -> int:
    """About as many bytes as the value's JSON has; costs no more than PATIENCE looks."""
    kind = type(value)
    if kind is str:
        return len(value) + 2
    if kind is not dict and kind is not list:
        return 8
    size = _written_size(value)
    if size is None:
        size = _whole_size(value)
    return _size_so_far(value) if size is None else size


def _written_size(value: Any) -> int | None:
    """
    What `_whole_size` comes to, told from the JSON: to write a value and to count in it what it is
    made of takes a tenth of the time of walking through it. None where the JSON does not tell.
    """
    try:
        text = encode_shown(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    if "\\" in text or "$" in text or len(text) > LONGEST:
        return None  # what stands there otherwise than in memory: escaped, or by reference
    pieces = text.split('"')
    bare = "s".join(pieces[::2])  # every text and key is one letter now
    commas, keys = bare.count(","), bare.count(":")
    containers = bare.count("{") + bare.count("[")
    empty = bare.count("{}") + bare.count("[]")
    if commas + containers - empty >= PATIENCE:
        return None
    strings = len(pieces) // 2
    texts = strings - keys
    others = commas + 1 - empty - texts
    written = len(bare) - strings - keys - commas - 2 * containers
    return len(text) + 2 - containers - empty + texts + 8 * others - written


def _whole_size(value: Any) -> int | None:
    """The size where all of it is looked at; None if that is too much."""
    size, left, pending = 2, PATIENCE - 1, [value]
    for part in pending:  # it grows meanwhile
        left -= len(part)
        if left < 0:
            return None
        if type(part) is dict:
            size += 4 * len(part) + sum(map(len, part))
            below = part.values()
        else:
            size += len(part)
            below = part
        for one in below:
            kind = type(one)
            if kind is str:
                size += len(one) + 3
            elif kind is dict or kind is list:
                pending.append(one)
            else:
                size += 8
    return size


def _size_so_far(value: Any) -> int:
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


FEW = 500
"""Values looked at before writing the value down is the quicker way to know."""


def surely_fits(value: Any, limit: int) -> bool:
    """
    Whether the value's JSON has at most `limit` bytes, as far as a short look can tell.

    Every part counts as long as it can become when it is written (a character takes up to six
    bytes), so that nothing too large is ever taken for small. False means: write it and see.
    """
    size, looked, pending = 0, 0, [value]
    while pending:
        part = pending.pop()
        looked += 1
        kind = type(part)
        if kind is str:
            size += 6 * len(part) + 3
        elif kind is dict or kind is list:
            if len(part) > FEW:
                return False
            size += 2
            if kind is dict:
                size += sum(6 * len(key) + 4 for key in part)
                part = part.values()
            pending.extend(part)
        elif kind is int:
            size += part.bit_length() // 3 + 3
        else:
            size += SIZES.get(kind, limit)
            if kind is Reference and part.sealed is not None:
                size += part.size
        if size > limit or looked > FEW:
            return False
    return True


SIZES: dict[type, int] = {
    float: 26,
    bool: 6,
    type(None): 5,
    Reference: 400,
    msgspec.UnsetType: 0,
}
