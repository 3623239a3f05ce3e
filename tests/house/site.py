"""
`make site`: the pages as a site with search, in dist/site.

Pages are copied as they lie in the repository, so that links between them hold, and links to
what is no page lead to its text. Nothing is loaded from elsewhere: no fonts, no counters.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.house.markdown import links_of
from tests.house.navigation import MARK, title_of
from tests.house.tree import ROOT, name_of, pages

FOLDER = ROOT / "build" / "site"
SITE = ROOT / "dist" / "site"
SECTIONS: tuple[tuple[str, str, str], ...] = (
    ("Learn", r"docs/learn/.*", "docs/learn/README.md"),
    ("Examples", r"examples/.*", "examples/README.md"),
    ("Reference", r"docs/reference/[^/]*", "docs/reference/README.md"),
    ("Kinds", r"docs/reference/tools/.*", "docs/reference/tools/README.md"),
    ("Operate", r"docs/operate/.*", "docs/operate/README.md"),
    ("Background", r"docs/[^/]*", "docs/README.md"),
    ("Inside", r"[A-Z]+.md|tests/.*|bench/.*|fuzz/.*", "README.md"),
    ("Decisions", r"docs/decisions/.*", "docs/decisions/README.md"),
)
"""Title, which pages are in it, and the page whose links say their order. The first that fits."""
CONFIG = """\
[project]
site_name = "NoETL"
site_description = "Declarative orchestration: playbooks in YAML, kept in an append-only log."
docs_dir = "pages"
site_dir = "site"
nav = [{nav}]
extra = {{ generator = false }}
[project.theme]
font = false
features = [
  "content.code.copy", "navigation.footer", "navigation.indexes", "navigation.sections",
  "navigation.top", "search.highlight", "toc.follow",
]
[project.markdown_extensions.tables]
[project.markdown_extensions.toc]
permalink = true
slugify = {{ object = "pymdownx.slugs.slugify", kwds = {{ case = "lower" }} }}
[project.markdown_extensions.pymdownx.highlight]
[project.markdown_extensions.pymdownx.superfences]
"""
FENCE_WORDS = re.compile(r"^(```\w+) .+$", re.MULTILINE)
"""What we tell our tests about a block; the generator would not know the fence."""


def nav() -> dict[str, list[Path]]:
    """Section → its pages, in their order; the front page is in none."""
    left = [page for page in pages() if page != ROOT / "README.md"]
    found: dict[str, list[Path]] = {}
    for title, pattern, index in SECTIONS:
        mine = [page for page in left if re.fullmatch(pattern, name_of(page))]
        left = [page for page in left if page not in mine]
        order = list(in_order(ROOT / index))
        found[title] = sorted(mine, key=lambda page: order.index(page) if page in order else 999)
    return found


def in_order(index: Path) -> Iterator[Path]:
    """A list, the pages that it links, and the lists below it with theirs."""
    yield index
    for page in dict.fromkeys(linked_from(index)):
        below = page.name == index.name and index.parent in page.parent.parents
        yield from in_order(page) if below else (page,)


def linked_from(page: Path) -> Iterator[Path]:
    return ((page.parent / target.partition("#")[0]).resolve() for _, target in links_of(page))


def config() -> str:
    rows = ['{ "NoETL" = "README.md" }']
    for title, section in nav().items():
        below = (f"{{ {quoted(title_of(page))} = {quoted(name_of(page))} }}" for page in section)
        rows.append(f"{{ {quoted(title)} = [{', '.join(below)}] }}")
    return CONFIG.format(nav=", ".join(rows))


def quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def stage() -> None:
    """Copy the pages, and what they link to."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for page in pages():
        copied = FOLDER / "pages" / name_of(page)
        copied.parent.mkdir(parents=True, exist_ok=True)
        text = MARK.sub("\n", page.read_text("utf-8"))  # the site has a footer of its own
        copied.write_text(FENCE_WORDS.sub(r"\1", text), "utf-8")
        for target in linked_from(page):
            if target.is_file() and target.suffix != ".md" and target.is_relative_to(ROOT):
                beside = FOLDER / "pages" / name_of(target)
                beside.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(target, beside)
    (FOLDER / "zensical.toml").write_text(config(), "utf-8")


def build() -> subprocess.CompletedProcess[str]:
    """Stage and build; a broken link is an error."""
    stage()
    words = [str(Path(sys.executable).with_name("zensical")), "build", "--strict", "--clean"]
    return subprocess.run(words, cwd=FOLDER, capture_output=True, text=True, check=False)


def main() -> int:
    done = build()
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
        return 1
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(FOLDER / "site", SITE)
    print(f"wrote {name_of(SITE)}/index.html and {len(pages()) - 1} more pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
