"""What stands inside a box of the SVG, line by line, and how large the box must be."""

import msgspec

from noetl.cli.graph.measure import measure, shorten
from noetl.server.views.drawing import Box, CardRow, Mark

TITLE, TEXT, SMALL = 14.0, 12.0, 11.0
PAD = 12.0
TITLE_HEIGHT, LINE = 22.0, 18.0
NARROWEST = 120.0
MOST_COLUMNS = 46
PILE = 8.0
"""How far the pile of a loop stands out behind its card."""


class Card(msgspec.Struct, frozen=True):
    """A box, cut to what can be shown, with its size."""

    title: str
    ends: tuple[str, ...]
    marks: tuple[Mark, ...]
    rows: tuple[CardRow, ...]
    more: str
    width: float
    height: float
    pile: float = 0.0
    """Part of width and height."""


def card_of(box: Box) -> Card:
    """Shorten what is too long and measure the rest."""
    title = shorten(box.name, MOST_COLUMNS)
    ends = tuple(word for word, there in (("entry", box.entry), ("final", box.final)) if there)
    marks = tuple(Mark(mark.sort, shorten(mark.text, MOST_COLUMNS)) for mark in box.marks)
    rows = tuple(
        CardRow(shorten(row.label, 28), shorten(row.kind, 20), shorten(row.note, 24), row.depth)
        for row in box.rows
    )
    more = f"… {box.hidden} more" if box.hidden else ""
    lines = len(marks) + len(rows) + bool(more)
    pile = PILE if any(mark.sort == "loop" for mark in marks) else 0.0
    return Card(
        title=title,
        ends=ends,
        marks=marks,
        rows=rows,
        more=more,
        width=max(
            NARROWEST, title_width(title, ends), *map(mark_width, marks), *map(row_width, rows)
        )
        + 2 * PAD
        + pile,
        height=2 * PAD + TITLE_HEIGHT - 4 + LINE * lines + (6 if rows else 0) + pile,
        pile=pile,
    )


def pill_width(word: str) -> float:
    return measure(word, SMALL, bold=True) + 12


def title_width(title: str, ends: tuple[str, ...]) -> float:
    return measure(title, TITLE, bold=True) + sum(pill_width(word) + 8 for word in ends)


def mark_width(mark: Mark) -> float:
    return pill_width(mark.sort) + 8 + measure(mark.text, TEXT)


def row_width(row: CardRow) -> float:
    note = measure(row.note, SMALL) + 10 if row.note else 0.0
    return (
        14.0 * row.depth
        + measure(row.label, TEXT)
        + 14
        + measure(row.kind, SMALL, mono=True)
        + note
    )
