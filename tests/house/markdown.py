"""What a Markdown page holds: its headings, links and fenced blocks."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

FENCE = re.compile(r"^```(\S*)[ ]*(.*)$")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$")


class Block(msgspec.Struct, frozen=True):
    """One fenced block: its language, the words behind it, its text, and where it begins."""

    page: Path
    line: int
    language: str
    words: str
    text: str


def blocks_of(page: Path) -> Iterator[Block]:
    opened: tuple[int, str, str] | None = None
    content: list[str] = []
    for number, line in enumerate(page.read_text("utf-8").splitlines(), start=1):
        fence = FENCE.match(line)
        if opened is None and fence:
            opened, content = (number, fence[1], fence[2]), []
        elif opened is not None and line == "```":
            yield Block(page, *opened, "\n".join(content) + "\n")
            opened = None
        else:
            content.append(line)


def prose_of(page: Path) -> list[str]:
    """The lines outside fenced blocks; fenced ones are left empty, so that numbers stay right."""
    inside, lines = False, []
    for line in page.read_text("utf-8").splitlines():
        fence = line.startswith("```")
        inside = inside != fence
        lines.append("" if inside or fence else line)
    return lines


def anchors_of(page: Path) -> set[str]:
    """What `page.md#…` may name, by the rule that code forges use."""
    headings = [match[1] for line in prose_of(page) if (match := HEADING.match(line))]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links_of(page: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(prose_of(page), start=1):
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            yield number, target
