"""
How deep is a value nested? (EVT-4)

Whoever walks through a value does so by recursion: codec, masking, templates, readers. Each of them
gives up at a depth of its own, which also depends on who called it. So no event holds more levels
than all of them can take.
"""

from itertools import accumulate
from typing import Any

from noetl.errors import ServerRefused
from noetl.messages.codec import encode_shown

DEEPEST = 200
"""Levels of lists and mappings in one event: twice what a template may read (TPL-5)."""

TOO_DEEP = (
    f"a value is nested deeper than {DEEPEST} levels of lists and mappings; flatten it, or keep it "
    "as text"
)

MARKS = b'[]{}"'
_OTHERS = bytes(set(range(256)) - set(MARKS))
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_STEPS = bytes.maketrans(b"[]", b"\x01\xff")
"""One level down, one level up, as signed bytes."""
FEW = 8
"""Levels that are taken away one by one: most values have no more."""


def is_deep(text: bytes, levels: int = DEEPEST) -> bool:
    """Whether a text of JSON has more than so many levels."""
    if len(text) <= 2 * levels or text.count(b"[") + text.count(b"{") <= levels:
        return False
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Brackets outside of strings; then the innermost pairs go, level by level.
    left = b"".join(text.translate(_BRACKETS, _OTHERS).split(b'"')[::2])
    few = min(FEW, levels)
    for _ in range(few):
        if not left:
            return False
        left = left.replace(b"[]", b"")
    # Each level takes a pass through all that is left, so whoever sends many deep values could make
    # us look at each of their bytes 200 times: what is deeper is counted in one pass.
    below = accumulate(memoryview(left.translate(_STEPS)).cast("b"))
    return max(below, default=0) > levels - few


def refuse_deep(value: Any, what: str) -> None:
    """Refuse what somebody sent; ServerRefused with the reason."""
    try:
        deep = is_deep(encode_shown(value))
    except RecursionError:
        deep = True
    if deep:
        raise too_deep(what)


def too_deep(what: str) -> ServerRefused:
    return ServerRefused(f"of {what}, {TOO_DEEP}", code="too_deep", status=422)
