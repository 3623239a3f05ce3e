"""Every example runs as a user runs it, with real services, and comes to what stands beside it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.house.tree import ROOT
from tests.support.once import once
from tests.system.program import noetl

from noetl.kinds.table import KINDS

EXAMPLES = ROOT / "examples"
FOLDERS = sorted(path for path in EXAMPLES.iterdir() if (path / "playbook.yaml").exists())
CASES = [case for folder in FOLDERS for case in sorted(folder.glob("expected*.json"))]
EXIT = {"completed": 0, "failed": 1}
pytestmark = pytest.mark.usefixtures("made_clusters")
KEYS = {"payload", "status", "steps", "ctx", "result", "error"}
ENOUGH = {"status", "steps", "ctx"}


def case_name(case: Path) -> str:
    return f"{case.parent.name}/{case.stem}"


def run_example(folder: Path, home: Path, payload: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The exit code, and the object of `--json`."""
    given = home / "payload.json"
    given.write_text(json.dumps(payload))
    done = subprocess.run(
        [sys.executable, EXAMPLES / "run.py", folder.name, "--payload", given, "--json"],
        capture_output=True,
        check=False,
        timeout=600,
        env={**os.environ, "NOETL_HOME": str(home / "home")},
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert done.stdout, done.stderr.decode()
    return done.returncode, msgspec.json.decode(done.stdout)


def run_once(
    case: Path, home: Path, factory: pytest.TempPathFactory
) -> tuple[int, dict[str, Any], tuple[int, str, str]]:
    """The exit code and the report of a case, and what the proof of its log said, for all tests."""

    def make() -> Any:
        payload = json.loads(case.read_text("utf-8")).get("payload", {})
        code, report = run_example(case.parent, home, payload)
        name = report["execution_id"]
        return code, report, noetl("replay", name, "--verify", NOETL_HOME=str(home / "home"))

    code, report, verified = once(factory, case_name(case).replace("/", "-"), make)
    return code, report, tuple(verified)


def compared(expected: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """The report, for the keys that are expected; no times, no ids."""
    steps = {step["step"]: step["runs"] for step in report["steps"]}
    error = {key: (report["error"] or {}).get(key) for key in expected.get("error", {})}
    found = {**report, "steps": steps, "error": error, "payload": expected.get("payload")}
    return {key: found[key] for key in expected}


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_an_example_comes_to_what_is_expected(
    case: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    expected = json.loads(case.read_text("utf-8"))
    assert ENOUGH <= expected.keys() <= KEYS
    code, report, (verified, out, err) = run_once(case, tmp_path, tmp_path_factory)
    assert compared(expected, report) == expected
    assert code == EXIT[expected["status"]]
    assert (verified, err) == (0, ""), out


@pytest.mark.rule("RES-1", "EVT-4")
def test_what_is_too_large_leaves_the_log(tmp_path: Path) -> None:
    folder = EXAMPLES / "14-large-results"
    _, report = run_example(folder, tmp_path, {})
    home = str(tmp_path / "home")
    events = noetl("events", report["execution_id"], "--json", NOETL_HOME=home).out.splitlines()
    assert max(map(len, events)) < 65_536
    whole = [event for event in events if '"measure"' in event and '"$ref"' in event]
    assert [json.loads(event)["name"] for event in whole] == ["task.done"]


def test_every_example_says_what_is_expected() -> None:
    assert [folder.name for folder in FOLDERS if not (folder / "expected.json").exists()] == []


def test_each_example_has_a_number_and_the_course_no_gap() -> None:
    """From 20 on stand the kinds, in no order."""
    numbers = sorted(int(folder.name.split("-")[0]) for folder in FOLDERS)
    assert len(set(numbers)) == len(numbers)
    course = [number for number in numbers if number < 20]
    assert course == list(range(1, len(course) + 1))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_example_says_how_to_run_it(folder: Path) -> None:
    """One that needs services says the command that starts them."""
    head = (folder / "playbook.yaml").read_text("utf-8").partition("apiVersion")[0]
    starts = f"python examples/run.py {folder.name}"
    alone = f"noetl run examples/{folder.name}/playbook.yaml"
    assert (starts if (folder / "serve.py").exists() else alone) in head


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_example_names_the_extras_that_it_needs(folder: Path) -> None:
    head, _, text = (folder / "playbook.yaml").read_text("utf-8").partition("apiVersion")
    kinds = [KINDS[kind] for kind in re.findall(r"kind: (\w+)", text) if kind in KINDS]
    wanted = {kind.extra for kind in kinds if kind.extra}
    if re.search(r"^ +jq: ", text, re.MULTILINE):
        wanted.add("transform")
    named = re.findall(r"# Needs: +pip install '\.\[([\w,]+)\]'", head)
    assert {extra for line in named for extra in line.split(",")} == wanted


def test_the_page_lists_the_course() -> None:
    page = (EXAMPLES / "README.md").read_text("utf-8")
    assert [folder.name for folder in FOLDERS if f"({folder.name}/playbook.yaml)" not in page] == []


def test_an_unknown_example_names_those_there_are() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "run.py", "06-rerty"],
        capture_output=True,
        check=False,
        timeout=600,
    )
    assert (done.returncode, done.stdout) == (3, b"")
    assert all(folder.name in done.stderr.decode() for folder in FOLDERS)
