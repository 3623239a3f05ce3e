"""
How one comes from page to page: each folder's README.md lists its pages, in the order of reading.

The last line of a page leads to the one before, up to the list, and to the one after; `make docs`
writes it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.markdown import HEADING, links_of, prose_of
from tests.house.tree import ROOT

DOCS = ROOT / "docs"
INDEX = "README.md"
RECORDS = DOCS / "decisions"
"""Found by their numbers."""
WHOLE = {DOCS / "conformance.md", RECORDS / INDEX}
"""Written by tests.conformance.matrix, and a list that grows at its end."""
MARK = re.compile(r"\n*<!-- navigation -->\n.*?<!-- end -->\n*\Z", re.DOTALL)


def indexes() -> list[Path]:
    return sorted(page for page in DOCS.rglob(INDEX) if not page.is_relative_to(RECORDS))


def listed(index: Path) -> list[Path]:
    """The pages of its folder and the lists below it, each once, in the order of its links."""
    targets = [(index.parent / target.split("#")[0]).resolve() for _, target in links_of(index)]
    below = (page for page in targets if page.suffix == ".md" and page != index)
    return list(dict.fromkeys(page for page in below if home_of(page) == index))


def home_of(page: Path) -> Path:
    """The list that a page belongs to."""
    folder = page.parent.parent if page.name == INDEX else page.parent
    return folder / INDEX


def paths() -> Iterator[tuple[Path, str]]:
    """Every page with its last line."""
    for index in indexes():
        pages = listed(index)
        for number, page in enumerate(pages):
            before = f"← {link(page, pages[number - 1])}" if number else ""
            after = f"{link(page, pages[number + 1])} →" if number + 1 < len(pages) else ""
            ways = (before, f"↑ {link(page, index)}", after)
            if page not in WHOLE:
                yield page, " · ".join(way for way in ways if way)


def link(page: Path, to: Path) -> str:
    target = Path(*relative(page.parent, to))
    return f"[{title_of(to)}]({target.as_posix()})"


def relative(folder: Path, to: Path) -> Iterator[str]:
    while not to.is_relative_to(folder):
        yield ".."
        folder = folder.parent
    yield from to.relative_to(folder).parts


def title_of(page: Path) -> str:
    heading = next(match for line in prose_of(page) if (match := HEADING.match(line)))
    return heading[1]


def with_navigation(text: str, line: str) -> str:
    return f"{MARK.sub('', text).rstrip()}\n\n<!-- navigation -->\n{line}\n<!-- end -->\n"
