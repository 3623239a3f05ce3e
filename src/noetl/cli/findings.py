"""Findings as a compiler would print them: the fault, its place, the line, how to fix it."""

from collections.abc import Iterable, Sequence

from noetl.cli.excerpt import excerpt
from noetl.cli.source import PlaybookSource
from noetl.cli.terminal import Paint, plain
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


def summary(name: str, findings: Sequence[Finding], paint: Paint) -> str:
    """The last line about one file."""
    errors = sum(finding.severity == "error" for finding in findings)
    warnings = len(findings) - errors
    counts = " and ".join(
        f"{count} {word}{'s' * (count != 1)}"
        for count, word in ((errors, "error"), (warnings, "warning"))
        if count
    )
    verdict = paint("error", "invalid") if errors else paint("good", "valid")
    return f"{plain(name)}: {verdict}{f', {counts}' if counts else ''}"
