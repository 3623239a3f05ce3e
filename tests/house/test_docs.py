"""The pages agree with each other and with the code."""

import re
import tomllib
from pathlib import Path

import pytest
from tests.conformance.matrix import read_families
from tests.house.markdown import anchors_of, links_of, prose_of
from tests.house.navigation import DOCS, INDEX, RECORDS, indexes, listed
from tests.house.tree import ROOT, SOURCE, modules, name_of, pages

from noetl.cli.commands import COMMANDS

RULES = [rule.id for family in read_families().values() for rule in family.rules]
CITED_RULE = re.compile(rf"\b(?:{'|'.join(read_families())})-(?:\d+|S2|S4|UP)\b")
CITED_DECISION = re.compile(r"\bdecision (\d{4})\b")
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
SECTIONS = ["Question", "What the sources say", "Decision", "Consequence", "Status"]


def test_links_between_pages_resolve() -> None:
    broken = []
    for page in pages():
        for line, target in links_of(page):
            if "://" in target or target.startswith("mailto:"):
                continue
            file, _, anchor = target.partition("#")
            destination = (page.parent / file).resolve() if file else page
            missing = not destination.exists()
            if missing or (anchor and anchor not in anchors_of(destination)):
                broken.append(f"{name_of(page)}:{line}: {target}")
    assert broken == []


def test_the_specification_has_every_rule_in_order() -> None:
    page = ROOT / "docs" / "reference" / "specification.md"
    headings = [line.removeprefix("### ") for line in prose_of(page) if line.startswith("### ")]
    assert headings == RULES


def test_cited_rules_exist() -> None:
    strangers = [
        f"{name_of(path)}: {rule}"
        for path in [*modules(), *pages()]
        # The tests of the matrix itself make rules up.
        if path.name != "test_matrix.py"
        for rule in CITED_RULE.findall(path.read_text("utf-8"))
        if rule not in RULES
    ]
    assert strangers == []


def test_cited_decisions_exist() -> None:
    numbers = {path.name[:4] for path in DECISIONS}
    strangers = [
        f"{name_of(path)}: {number}"
        for path in [*modules(), *pages()]
        for number in CITED_DECISION.findall(path.read_text("utf-8"))
        if number not in numbers
    ]
    assert strangers == []


def test_decisions_are_numbered_without_a_gap() -> None:
    assert [path.name[:4] for path in DECISIONS] == [f"{n:04}" for n in range(len(DECISIONS))]


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_its_five_parts(page: Path) -> None:
    lines = prose_of(page)
    assert lines[0].startswith(f"# {page.name[:4]} · ")
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == SECTIONS


def test_the_index_of_decisions_lists_each() -> None:
    index = ROOT / "docs" / "decisions" / "README.md"
    listed = [target for _, target in links_of(index)]
    assert [page.name for page in DECISIONS if page.name not in listed] == []


def test_every_package_has_its_row_in_the_architecture() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    packages = [path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()]
    assert [name for name in sorted(packages) if f"| `{name}/` |" not in text] == []


def test_the_changelog_has_an_unreleased_part() -> None:
    assert "## Unreleased" in prose_of(ROOT / "CHANGELOG.md")


def test_each_dependency_has_its_reason_in_the_changelog() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    wanted = [
        *project["project"]["dependencies"],
        *(name for extra in extras for name in extra),
        *(name for group in project["dependency-groups"].values() for name in group),
    ]
    names = {re.split(r"[\[<>=;]", name)[0] for name in wanted} - {project["project"]["name"]}
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert sorted(name for name in names if f"[{name}]" not in text) == []


def test_every_page_is_reached_from_the_readme() -> None:
    seen, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        ahead += [(page.parent / target.split("#")[0]).resolve() for _, target in links_of(page)]
    assert [name_of(page) for page in pages() if page not in seen] == []


def test_every_page_is_listed_by_its_folder() -> None:
    """So each has a page before it, one after it, and a way up (`make docs` writes them)."""
    found = [page for index in indexes() for page in listed(index)]
    held = [page for page in pages() if page.is_relative_to(DOCS) and page != DOCS / INDEX]
    alone = [page for page in held if page not in found and RECORDS not in page.parents]
    assert [name_of(page) for page in alone] == []


def test_make_targets_that_pages_name_exist() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    named = {
        (name_of(page), target)
        for page in pages()
        for line in prose_of(page)
        for target in re.findall(r"(?:^    |`)make ([a-z-]+)", line)
    }
    assert len(named) > 5
    assert [place for place in sorted(named) if place[1] not in targets] == []


def test_commands_that_the_course_uses_exist() -> None:
    """The specification names commands that are to come; the course shows what is there."""
    folders = (ROOT / "docs" / "learn", ROOT / "docs" / "operate", ROOT / "README.md")
    named = {
        (name_of(page), command)
        for page in pages()
        if any(page.is_relative_to(folder) for folder in folders)
        for line in prose_of(page)
        for command in re.findall(r"(?:^    |`|\$\()noetl ([a-z]+)", line)
    }
    assert len(named) > 5
    assert [place for place in sorted(named) if place[1] not in COMMANDS] == []
