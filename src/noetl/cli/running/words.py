"""The words for durations, errors and values in lines that people read."""

import re
from typing import Any

import msgspec

from noetl.cli.terminal import is_terminal, plain
from noetl.control.waits import words_of
from noetl.late import late
from noetl.messages.codec import REF, encode_shown
from noetl.messages.envelope import timestamp
from noetl.messages.events import WaitStarted

LONGEST = 200
KINDS_OF_VALUES = {"string": "text", "list": "a list", "object": "a mapping", "dict": "a mapping"}
SQL_PLACE = late(r"\s*^LINE \d+: .*(?:\n.*\^+)?", re.MULTILINE)
"""The place of a fault in SQL: it says something on lines of its own only."""


def seconds(ms: float) -> str:
    """A duration as people say it."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    minutes, rest = divmod(int(ms / 1000), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def error_words(error: dict[str, Any] | None) -> str:
    """`kind: message`, on one line."""
    if not error:
        return "no error was recorded"
    message = SQL_PLACE.sub("", str(error.get("message", "")))
    return short(f"{error.get('kind', 'error')}: {message}")


def short(text: str, room: int = LONGEST) -> str:
    """On one line, fit for any terminal, and there at most `room` characters."""
    line = " ".join(text.split())
    return plain(line if len(line) <= room or not is_terminal() else line[: room - 1] + "…")


def value_words(value: Any, room: int = LONGEST) -> str:
    """A value in short: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return short(value, room)
    if isinstance(value, dict) and value.keys() == {REF} and isinstance(value[REF], dict):
        return stored_words(value[REF])
    try:
        most = room * 4 if is_terminal() else None
        return short(encode_shown(value)[:most].decode("utf-8", "replace"), room)
    except (TypeError, msgspec.EncodeError, RecursionError):
        return short(repr(value), room)


def stored_words(fields: dict[str, Any]) -> str:
    """A value that is too large to be shown (RES-1)."""
    kind = KINDS_OF_VALUES.get(fields.get("schema_hint") or "", "a value")
    size, where = fields.get("size", 0), f"{fields.get('store')}: {fields.get('key')}"
    return short(f"{kind} of {size:,} bytes, stored outside the log in {where}")


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def awaited_words(event: WaitStarted) -> str:
    """For what a task waits (WAIT-7)."""
    until = "" if event.due is None else f", until {timestamp(event.due)}"
    return short(f"waits for {' or '.join(map(words_of, event.awaits))}{until}")
