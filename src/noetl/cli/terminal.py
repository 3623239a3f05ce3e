"""How text reaches a terminal: widths of characters, what must be escaped, when to use colour."""

import os
import re
import sys
from typing import Literal

from noetl.late import late

Tone = Literal["error", "warning", "note", "strong", "good"]

CODES: dict[Tone, str] = {
    "error": "1;31",
    "warning": "1;33",
    "note": "1;34",
    "strong": "1",
    "good": "1;32",
}

PAINTED = late(rf"(\x1b\[(?:0|{'|'.join(map(re.escape, CODES.values()))})m)")

# Controls, formats (bidirectional overrides among them), surrogates, private and unassigned
# characters, line and paragraph separators: each can move or hide what stands beside it.
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
TAB = 4


def cell(char: str, column: int = 0) -> tuple[str, int]:
    """What to print for one character at a column, and how many columns it takes."""
    if " " <= char <= "~":
        return char, 1
    if char == "\t":
        width = TAB - column % TAB
        return " " * width, width
    from unicodedata import category, combining, east_asian_width  # a table of a megabyte

    if category(char) in HIDDEN:
        shown = escape(char)
        return shown, len(shown)
    if combining(char) or category(char) in ("Mn", "Me"):
        return char, 0
    return char, 2 if east_asian_width(char) in "WF" else 1


def escape(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def plain(text: str, *, keep: str = "") -> str:
    """`text` with everything that could steer a terminal escaped, but for the characters kept."""
    if text.isascii() and text.isprintable():
        return text
    from unicodedata import category

    return "".join(
        char if char in keep or category(char) not in HIDDEN else escape(char) for char in text
    )


def steady(text: str, *, colour: bool, keep: str = "\n\t") -> str:
    """The same for whole lines: breaks and tabs stay, and of colours those that `Paint` gives."""
    if text.isascii() and text.isprintable():
        return text
    if not colour:
        return plain(text, keep=keep)
    pieces = PAINTED.split(text)
    pieces[::2] = [plain(piece, keep=keep) for piece in pieces[::2]]
    return "".join(pieces)


def width_of(text: str) -> int:
    return sum(cell(char)[1] for char in text)


class Paint:
    """Puts colour on words, if the stream is a terminal that wants it (NO_COLOR)."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled

    def __call__(self, tone: Tone, text: str) -> str:
        return f"\x1b[{CODES[tone]}m{text}\x1b[0m" if self.enabled else text


def wants_colour(*, err: bool = False) -> bool:
    """Colour is for people: a terminal, no NO_COLOR (any value), not a dumb one."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    stream = sys.stderr if err else sys.stdout
    return stream is not None and stream.isatty()


def is_terminal(*, err: bool = False) -> bool:
    """Whether a person looks at it: what goes into a pipe or a file is never cut or wrapped."""
    stream = sys.stderr if err else sys.stdout
    return stream is not None and stream.isatty()


def wrapped(text: str, room: int) -> str:
    """The lines, those that are too long for the terminal broken between words, and indented."""
    return "\n".join(piece for line in text.split("\n") for piece in pieces_of(line, room))


def pieces_of(line: str, room: int) -> list[str]:
    if shown_width(line) <= room or not line.strip():
        return [line]
    indent = " " * (len(line) - len(line.lstrip(" ")))
    deeper = f"{indent}    " if len(indent) + 24 < room else ""
    pieces, now = [], indent
    for word in line[len(indent) :].split(" "):
        longer = f"{now}{'' if not now.strip() else ' '}{word}"
        if now.strip() and shown_width(longer) > room:
            pieces.append(now)
            longer = f"{deeper}{word}"
        now = longer
    return [*pieces, now]


def shown_width(text: str) -> int:
    """The columns that a line takes; colours take none."""
    return width_of("".join(PAINTED.split(text)[::2]))


def columns(*, err: bool = False) -> int:
    """The width of the terminal; 100 where there is none, so that output is the same everywhere."""
    if not is_terminal(err=err):
        return 100
    stream = sys.stderr if err else sys.stdout
    return max(40, os.get_terminal_size(stream.fileno()).columns)
