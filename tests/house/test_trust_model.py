"""Every promise of the trust model names the tests that prove it, and they exist."""

import re

from tests.house.tree import ROOT, functions_of, tree_of

PAGE = ROOT / "docs" / "operate" / "trust-model.md"
HEADER = "| promise | proved by |"
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def promises() -> dict[str, list[tuple[str, list[tuple[str, str]]]]]:
    """Section → its promises, each with the tests in its second cell."""
    found: dict[str, list[tuple[str, list[tuple[str, str]]]]] = {}
    section, inside = "", False
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
            found[section] = []
        inside = line == HEADER or (inside and line.startswith("|"))
        if inside and line != HEADER and not line.startswith("|---"):
            _, promise, proofs, _ = line.split("|")
            found[section].append((promise.strip(), TEST.findall(proofs)))
    return found


def test_every_section_makes_promises() -> None:
    assert [name for name, rows in promises().items() if not rows] == []


def test_every_promise_is_a_sentence_that_names_a_test() -> None:
    rows = [row for rows in promises().values() for row in rows]
    assert len(rows) > 30
    assert [promise for promise, tests in rows if not tests or not promise.endswith(".")] == []


def test_every_named_test_exists() -> None:
    named = {test for rows in promises().values() for _, tests in rows for test in tests}
    there = {
        (file, function.name)
        for file in {file for file, _ in named}
        if (ROOT / file).is_file()
        for function in functions_of(tree_of(ROOT / file))
    }
    assert sorted(named - there) == []
