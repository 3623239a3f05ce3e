"""The words for durations, errors and values in lines that people read."""

from typing import Any

import msgspec

from noetl.cli.terminal import plain
from noetl.control.waits import words_of
from noetl.messages.codec import encode
from noetl.messages.envelope import timestamp
from noetl.messages.events import WaitStarted

LONGEST = 200


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
    return short(f"{error.get('kind', 'error')}: {error.get('message', '')}")


def short(text: str, room: int = LONGEST) -> str:
    """At most `room` characters on one line, fit for any terminal."""
    line = " ".join(text.split())
    return plain(line if len(line) <= room else line[: room - 1] + "…")


def value_words(value: Any, room: int = LONGEST) -> str:
    """A value in short: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return short(value, room)
    try:
        return short(encode(value)[: room * 4].decode("utf-8", "replace"), room)
    except (TypeError, msgspec.EncodeError, RecursionError):
        return short(repr(value), room)


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def awaited_words(event: WaitStarted) -> str:
    """For what a task waits (WAIT-7)."""
    until = "" if event.due is None else f", until {timestamp(event.due)}"
    return short(f"waits for {' or '.join(map(words_of, event.awaits))}{until}")
