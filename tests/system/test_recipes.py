"""Every recipe of the documentation runs as it is shown, and does what its page says."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.house.markdown import blocks_of
from tests.system.program import NOETL, ROOT, noetl

RECIPES = ROOT / "docs" / "learn" / "recipes"
PAGES = sorted(page for page in RECIPES.glob("*.md") if page.name != "README.md")


def shown(language: str) -> list[tuple[Path, str]]:
    return [
        (page, block.text)
        for page in PAGES
        for block in blocks_of(page)
        if block.language == language
    ]


PLAYBOOKS = {
    yaml.safe_load(text)["metadata"]["name"]: text
    for _, text in shown("yaml")
    if text.startswith("apiVersion:")
}
"""Text by the name of the playbook, under which its page saves it."""
RUNS: list[tuple[str, list[str], dict[str, Any]]] = [
    ("alarm", [], {"status": "failed", "error": "ValueError: the source is empty"}),
    ("alarm", ["rows=[1, 2]"], {"status": "completed"}),
    (
        "alarm-arc",
        [],
        {
            "status": "failed",
            "error": "not delivered, refunded: ValueError: the address is unknown",
        },
    ),
    ("load", ["day=2026-02-01"], {"status": "completed", "ctx": {"loaded": 3}}),
    ("backfill", ["last=2026-01-02"], {"status": "completed"}),
    ("backfill", ["last=never"], {"status": "failed"}),
    ("fan-out", [], {"status": "completed", "missing": 1}),
    (
        "fan-out",
        ['broken=["a", "b", "c"]'],
        {"status": "failed", "error": "3 of 5 shops failed"},
    ),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The playbooks and tests of all pages, saved as the pages say."""
    for name, text in PLAYBOOKS.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    [(_, tests)] = [(page, text) for page, text in shown("yaml") if page.stem == "testing"]
    (tmp_path / "fan-out.test.yaml").write_text(tests)
    return tmp_path


@pytest.mark.parametrize(("name", "given", "expected"), RUNS, ids=lambda value: str(value)[:30])
def test_a_recipe_runs(folder: Path, name: str, given: list[str], expected: dict[str, Any]) -> None:
    settings = [word for one in given for word in ("--set", one)]
    answer = noetl(
        "run", folder / f"{name}.yaml", *settings, "--json", NOETL_HOME=str(folder / "home")
    )
    [told] = answer.objects()
    assert told["status"] == expected["status"], answer.err
    assert answer.code == (0 if expected["status"] == "completed" else 1)
    if "error" in expected:
        assert told["error"]["message"] == expected["error"]
    assert {**told["ctx"], **expected.get("ctx", {})} == told["ctx"]
    if "missing" in expected:
        assert told["ctx"]["missing"] == expected["missing"]


def test_every_recipe_is_run() -> None:
    assert {name for name, _, _ in RUNS} == set(PLAYBOOKS)


def test_a_load_that_runs_twice_changes_nothing(folder: Path) -> None:
    for _ in range(2):
        answer = noetl("run", folder / "load.yaml", "--json", NOETL_HOME=str(folder / "home"))
        [told] = answer.objects()
        assert told["result"] == [{"loaded": 3, "amount": 60}]


def test_the_tests_of_the_page_pass(folder: Path) -> None:
    answer = noetl("test", folder / "fan-out.test.yaml", NOETL_HOME=str(folder / "home"))
    assert answer.code == 0, answer.out + answer.err
    assert "3 tests passed" in answer.out


def test_the_commands_for_ci_accept_the_recipes(folder: Path) -> None:
    (folder / "playbooks").mkdir()
    (folder / "tests").mkdir()
    for name in PLAYBOOKS:
        (folder / "playbooks" / f"{name}.yaml").write_text(PLAYBOOKS[name])
    text = (folder / "fan-out.test.yaml").read_text()
    (folder / "tests" / "fan-out.test.yaml").write_text(
        text.replace("playbook: fan-out.yaml", "playbook: ../playbooks/fan-out.yaml")
    )
    [(_, script)] = shown("sh")
    done = subprocess.run(
        ["sh", "-eu", "-c", script],
        cwd=folder,
        env={"PATH": f"{Path(NOETL).parent}:/usr/bin:/bin", "NOETL_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
