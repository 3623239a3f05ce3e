"""The workflow patterns of docs/patterns.md: each playbook does what its pattern asks for."""

import asyncio
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.house.tree import ROOT
from tests.support.one_run import OneRun, run_file

from noetl.playbook.load import load

FOLDER = ROOT / "tests" / "patterns"
PAGE = ROOT / "docs" / "patterns.md"
FILES = sorted(FOLDER.glob("*.yaml"))
CHILDREN = sorted((FOLDER / "children").glob("*.yaml"))
EXPECTED = "#= "
STATES = {"yes", "idiom"}
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]*) \| (\w+) \|$", re.MULTILINE)
LINK = re.compile(r"^\[.+\]\(\.\./tests/patterns/(.+)\)$")


def expected_of(file: Path) -> dict[str, Any]:
    """What stands in the head of a pattern, behind `#=`."""
    lines = [line for line in file.read_text("utf-8").splitlines() if line.startswith(EXPECTED)]
    expected: dict[str, Any] = yaml.safe_load("\n".join(line[len(EXPECTED) :] for line in lines))
    return expected


def compared(expected: dict[str, Any], run: OneRun, children: list[OneRun]) -> dict[str, Any]:
    """What came of the run, for the keys that the head names."""
    names = expected.get("events", {})
    errors = run.error or {}
    found: dict[str, Any] = {
        "status": run.status,
        "steps": run.steps,
        "ctx": {key: run.ctx.get(key) for key in expected.get("ctx", {})},
        "error": {key: errors.get(key) for key in expected.get("error", {})},
        "events": {name: run.events[name] for name in names},
        "children": dict(Counter(child.status for child in children)),
        "child_steps": children[0].steps if children else None,
    }
    return {key: found[key] for key in expected}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_pattern_does_what_its_head_says(file: Path, tmp_path: Path) -> None:
    expected = expected_of(file)
    assert {"status", "steps"} <= expected.keys()
    signals = expected.pop("signals", [])
    run, children = asyncio.run(run_file(file, tmp_path, signals))
    assert compared(expected, run, children) == expected


@pytest.mark.parametrize("file", [*FILES, *CHILDREN], ids=lambda file: file.stem)
def test_a_pattern_is_valid_without_a_warning(file: Path) -> None:
    assert load(file.read_bytes()).findings == ()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_head_of_a_pattern_names_it(file: Path) -> None:
    number = int(file.stem.split("-")[1])
    names = {int(row[0]): row[1].strip() for row in ROW.findall(PAGE.read_text("utf-8"))}
    assert file.read_text("utf-8").startswith(f"# WCP-{number} · {names[number]}: ")


def test_the_page_has_all_patterns_in_order() -> None:
    rows = ROW.findall(PAGE.read_text("utf-8"))
    assert [int(row[0]) for row in rows] == list(range(1, 44))


def test_the_page_and_the_folder_agree() -> None:
    links: dict[int, str] = {}
    for number, _, _, file, state in ROW.findall(PAGE.read_text("utf-8")):
        assert state in STATES
        link = LINK.match(file)
        assert link is not None, f"pattern {number}"
        links[int(number)] = link[1]
    assert links == {int(file.stem.split("-")[1]): file.name for file in FILES}


def test_every_child_is_used() -> None:
    used = "\n".join(file.read_text("utf-8") for file in FILES)
    assert [child.name for child in CHILDREN if f"children/{child.name}" not in used] == []


def test_the_page_counts_right() -> None:
    text = PAGE.read_text("utf-8")
    states = Counter(row[4] for row in ROW.findall(text))
    told = dict(re.findall(r"\*\*(\w+)\*\* \((\d+)\)", text))
    assert {state: int(count) for state, count in told.items()} == dict(states)
