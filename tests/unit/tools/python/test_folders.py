"""Folders of children: fresh, gone at the end, and removed for those who could not."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.unit.tools.python.bench import Bench

from noetl.tools.process.folders import Folders

KILLED = """
import os
from noetl.tools.process.folders import Folders
print(Folders("python").new(), flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_each_child_has_its_own_and_none_is_left(place: Path) -> None:
    folders = Folders("python")
    first, second = folders.new(), folders.new()
    assert first != second
    assert [*Path(first).iterdir()] == []
    folders.close()
    assert [*place.iterdir()] == []
    folders.close()


def test_what_a_killed_worker_left_is_removed_by_the_next(place: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, check=False)
    left = Path(killed.stdout.decode().strip())
    assert left.is_dir()
    active, later = Folders("python"), Folders("python")
    kept = active.new()
    assert not left.exists()
    later.new()
    assert Path(kept).exists()
    active.close()
    later.close()
    assert [*place.iterdir()] == []


def test_folders_without_a_lock_are_not_ours(place: Path) -> None:
    (place / "noetl-python-other").mkdir()
    folders = Folders("python")
    folders.new()
    folders.close()
    assert [entry.name for entry in place.iterdir()] == ["noetl-python-other"]


def test_a_tool_leaves_nothing(place: Path) -> None:
    bench = Bench(place / "home")
    bench.result("open('file', 'w').close()")
    bench.run("import os\nos.mkdir('a')\nopen('a/file', 'w').close()\nos._exit(0)")
    bench.close()
    assert [*place.iterdir()] == []
