"""The words for durations, errors and values in lines that people read."""

from typing import Any

from noetl.cli.terminal import is_terminal, plain
from noetl.control.waits import words_of
from noetl.messages.envelope import timestamp
from noetl.messages.events import WaitStarted
from noetl.messages.words import error_text, on_one_line, value_text

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
    return plain(error_text(error, room_for(LONGEST)))


def short(text: str, room: int = LONGEST) -> str:
    """On one line, fit for any terminal, and there at most `room` characters."""
    return plain(on_one_line(text, room_for(room)))


def value_words(value: Any, room: int = LONGEST) -> str:
    """A value in short: text as it is, anything else as JSON."""
    return plain(value_text(value, room_for(room)))


def room_for(most: int) -> int | None:
    """Characters of one value in a line: a file or a pipe gets all of it."""
    return most if is_terminal() else None


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def awaited_words(event: WaitStarted) -> str:
    """For what a task waits (WAIT-7)."""
    until = "" if event.due is None else f", until {timestamp(event.due)}"
    return short(f"waits for {' or '.join(map(words_of, event.awaits))}{until}")
