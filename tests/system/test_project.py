"""`noetl init` and `noetl dev`: a project from nothing, and what is told on each save."""

import json
import os
import signal
from pathlib import Path

import pytest
from tests.system.program import noetl
from tests.system.running import running

MADE = [
    ".gitignore",
    ".vscode/settings.json",
    "README.md",
    "playbook.schema.json",
    "playbook.test.yaml",
    "playbook.yaml",
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    answer = noetl("init", tmp_path / "My reports")
    assert answer.code == 0
    return tmp_path / "My reports"


def files_in(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*.*") if path.is_file()
    )


def test_a_new_project_runs_and_its_tests_pass(project: Path, tmp_path: Path) -> None:
    assert files_in(project) == MADE
    home = str(tmp_path / "home")
    ran = noetl("run", project / "playbook.yaml", "--set", "long=3", "--json", NOETL_HOME=home)
    [report] = ran.objects()
    assert (report["status"], report["ctx"]) == ("completed", {"words": 7})
    assert [step["step"] for step in report["steps"]] == ["start", "long"]
    assert noetl("test", project / "playbook.test.yaml", NOETL_HOME=home).code == 0
    checked = noetl("validate", "--json", project / "playbook.yaml")
    assert checked.objects()[0]["findings"] == []
    assert "path: my-reports" in (project / "playbook.yaml").read_text()
    assert json.loads((project / "playbook.schema.json").read_bytes())["title"] == "NoETL playbook"


def test_nothing_is_written_over(project: Path) -> None:
    mine = project / "README.md"
    for name in MADE:
        if name != "README.md":
            (project / name).unlink()
    mine.write_text("mine")
    answer = noetl("init", project)
    assert answer.code == 3
    assert f"{mine} is there already, nothing was written" in answer.err
    assert (files_in(project), mine.read_text()) == (["README.md"], "mine")


def test_each_save_is_checked_and_tested_until_ctrl_c(project: Path, tmp_path: Path) -> None:
    file = project / "playbook.yaml"
    good = file.read_text()
    with running("dev", file, home=tmp_path / "home") as dev:
        dev.wait_for("3 tests passed")
        dev.wait_for("waiting for a save")
        file.write_text(good.replace("- step: short\n", "- step: shrot\n", 1))
        dev.wait_for("hint: did you mean 'short'?")
        dev.wait_for("waiting for a save")
        saved = project / "new.yaml"
        saved.write_text(good.replace("workload.long", "workload.long - 3"))
        os.replace(saved, file)
        dev.wait_for("FAIL  a short text")
        dev.wait_for("waiting for a save")
        dev.send(signal.SIGINT)
        assert dev.end() == 0


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    answer = noetl("dev", tmp_path / "nowhere.yaml")
    assert (answer.code, answer.out) == (3, "")
    assert "there is no such file" in answer.err
