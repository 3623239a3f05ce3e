"""Errors and values on one line, in words for people; whoever prints them escapes what he must."""

import re
from typing import Any

import msgspec

from noetl.late import late
from noetl.messages.codec import REF, encode_shown

KINDS_OF_VALUES = {"string": "text", "list": "a list", "object": "a mapping", "dict": "a mapping"}
STORED = 200
"""Characters in which it can be said where a value is stored."""
SQL_PLACE = late(r"\s*^LINE \d+: .*(?:\n.*\^+)?", re.MULTILINE)
"""The place of a fault in SQL: it says something on lines of its own only."""


def on_one_line(text: str, room: int | None = None) -> str:
    """At most `room` characters of it."""
    line = " ".join(text.split())
    return line if room is None or len(line) <= room else line[: room - 1] + "…"


def error_text(error: dict[str, Any] | None, room: int | None = None) -> str:
    """`kind: message`."""
    if not error:
        return "no error was recorded"
    message = SQL_PLACE.sub("", str(error.get("message", "")))
    return on_one_line(f"{error.get('kind', 'error')}: {message}", room)


def value_text(value: Any, room: int | None = None) -> str:
    """A value in short: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return on_one_line(value, room)
    if isinstance(value, dict) and value.keys() == {REF} and isinstance(value[REF], dict):
        return on_one_line(stored_text(value[REF]), room and max(room, STORED))
    try:
        most = None if room is None else room * 4
        return on_one_line(encode_shown(value)[:most].decode("utf-8", "replace"), room)
    except (TypeError, msgspec.EncodeError, RecursionError):
        return on_one_line(repr(value), room)


def stored_text(fields: dict[str, Any]) -> str:
    """A value that is too large to be shown (RES-1)."""
    kind = KINDS_OF_VALUES.get(fields.get("schema_hint") or "", "a value")
    size, where = fields.get("size", 0), f"{fields.get('store')}: {fields.get('key')}"
    return f"{kind} of {size:,} bytes, stored outside the log in {where}"
