"""Findings as a compiler would print them: the fault, its place, the line, how to fix it."""

from collections.abc import Iterable, Sequence

from noetl.cli.source import PlaybookSource
from noetl.cli.terminal import Paint, cell, plain
from noetl.late import late
from noetl.playbook.finding import Finding

MOST_SHOWN = 1_000  # nobody reads more, and printing them costs seconds


def render(
    source: PlaybookSource, findings: Sequence[Finding], paint: Paint, room: int
) -> Iterable[str]:
    """One block of text per finding."""
    lines = source.lines() if findings else []
    for finding in findings[:MOST_SHOWN]:
        yield "\n".join(block(source.name, lines, finding, paint, room))
    if len(findings) > MOST_SHOWN:
        yield f"… and {len(findings) - MOST_SHOWN:,} more findings; --json prints them all\n"


def block(
    name: str, lines: Sequence[str], finding: Finding, paint: Paint, room: int
) -> Iterable[str]:
    number = str(finding.line)
    margin = " " * len(number)
    tag = paint(finding.severity, f"{finding.severity}[{finding.code}]")
    yield f"{tag}: {paint('strong', plain(finding.message))}"
    place = f"{plain(name)}:{finding.line}:{finding.column}"
    if finding.line == 0:  # of the request (VAL-7)
        place = f"the input of {plain(name)}"
    yield f"{margin}{paint('note', '-->')} {place}  {plain(finding.path)}".rstrip()
    if 0 < finding.line <= len(lines):
        shown, carets = excerpt(lines[finding.line - 1], finding.column, room - len(number) - 3)
        bar = paint("note", "|")
        yield f"{margin} {bar}"
        yield f"{paint('note', number)} {bar} {shown}"
        yield f"{margin} {bar} {paint(finding.severity, carets)}"
    if finding.hint:
        first, *more = finding.hint.splitlines()
        yield f"{margin} {paint('note', '=')} hint: {plain(first)}"
        yield from (f"{margin}         {plain(line)}" for line in more)
    yield ""


def summary(name: str, findings: Sequence[Finding], paint: Paint, *, strict: bool = False) -> str:
    """The last line about one file; `strict` is in the way of warnings."""
    errors = sum(finding.severity == "error" for finding in findings)
    warnings = len(findings) - errors
    counts = " and ".join(
        f"{count} {word}{'s' * (count != 1)}"
        for count, word in ((errors, "error"), (warnings, "warning"))
        if count
    )
    verdict = paint("error", "invalid") if errors else paint("good", "valid")
    if strict and warnings and not errors:
        verdict = paint("error", "refused by --strict")
    return f"{plain(name)}: {verdict}{f', {counts}' if counts else ''}"


CUT = "…"
# What one YAML scalar or key covers, by its first character; the rest of the line is not meant.
QUOTED = late(r"""'(?:[^']|'')*'?|"(?:[^"\\]|\\.)*"?""")
SPLICE = late(r"\{\{.*?\}\}|\{%.*?%\}")
PLAIN = late(r"[^\s:#,\[\]{}]+(?:(?::(?=\S)|#|[ ]+(?![#\s,\[\]{}]))[^\s:#,\[\]{}]*)*")


def reach(line: str, start: int) -> int:
    """The index after the key or scalar that begins at `start`; at least one character."""
    for pattern in (QUOTED, SPLICE, PLAIN):
        found = pattern.match(line, start)
        if found and found.end() > start:
            return found.end()
    return start + 1


def excerpt(line: str, column: int, room: int) -> tuple[str, str]:
    """
    The line as it can be shown in `room` columns, and the carets to print below it.

    Tabs are widened, wide characters counted as two, control characters escaped; a line too long
    is cut on either side, the meant part in view.
    """
    room = max(room, 20)
    start = max(0, min(column - 1, len(line)))
    # Only what can be shown is looked at: one line may be two megabytes long.
    skipped = max(0, start - room)
    piece, start = line[skipped : start + room + 1], start - skipped
    cells = cells_of(piece)
    widths = [width for _, width in cells]
    whole = len(piece) == len(line) and sum(widths) <= room
    first, last = (0, len(cells)) if whole else window(widths, start, room)
    left = CUT if first or skipped else ""
    right = CUT if last < len(cells) or skipped + len(piece) < len(line) else ""
    shown = left + "".join(text for text, _ in cells[first:last]) + right
    before = len(left) + sum(width for _, width in cells[first:start])
    marked = sum(width for _, width in cells[start : min(reach(piece, start), last)])
    return shown.rstrip(), " " * before + "^" * max(1, marked)


def cells_of(line: str) -> list[tuple[str, int]]:
    cells: list[tuple[str, int]] = []
    column = 0
    for char in line:
        cells.append(cell(char, column))
        column += cells[-1][1]
    return cells


def window(widths: list[int], start: int, room: int) -> tuple[int, int]:
    """Which cells to show so that `start` is in view, with a third of the room before it."""
    room -= 2 * len(CUT)
    first, before = 0, sum(widths[:start])
    while before > room // 3:
        before -= widths[first]
        first += 1
    last, used = start, before
    while last < len(widths) and used + widths[last] <= room:
        used += widths[last]
        last += 1
    return first, last
