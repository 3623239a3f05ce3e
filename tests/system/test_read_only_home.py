"""A home that may not be written can be looked at, and nothing is left behind in it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from tests.system.program import POWERLESS, Answer, noetl

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: looked_at, path: demo/looked_at}
workflow:
  - step: start
    tool:
      - greet: {kind: python, args: {}, code: "print('hello'); result = 1"}
"""


class Home:
    """One that holds an ended execution; files beside the log as the case wants them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "home"
        self._playbook = folder / "playbook.yaml"
        self._playbook.write_text(PLAYBOOK)
        ran = noetl("run", self._playbook, "--json", NOETL_HOME=str(self.folder))
        assert ran.code == 0, ran.err
        self.execution_id = str(ran.objects()[0]["execution_id"])
        registered = noetl("register", self._playbook, NOETL_HOME=str(self.folder))
        assert registered.code == 0, registered.err

    def close(self, journal: bool, index: bool) -> dict[str, bytes]:
        """As a process that was killed leaves it, or one that ended; then nobody may write."""
        database = self.folder / "noetl.db"
        if journal:
            connection = apsw.Connection(str(database))
            connection.execute("update execution set updated_at = updated_at + 1")
            aside = self.folder.with_name("aside")
            shutil.copytree(self.folder, aside)
            connection.close()
            shutil.rmtree(self.folder)
            aside.rename(self.folder)
            if not index:
                (self.folder / "noetl.db-shm").unlink()
        for below in self.folder.rglob("*"):
            below.chmod(0o555 if below.is_dir() else 0o444)
        self.folder.chmod(0o555)
        return self.files()

    def files(self) -> dict[str, bytes]:
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {path.name: path.read_bytes() for path in found if path.name != "noetl.db-shm"}

    def ask(self, *words: str | Path) -> Answer:
        before = POWERLESS if os.geteuid() == 0 else ()
        return noetl(*words, before=before, NOETL_HOME=str(self.folder))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    for path in (made.folder, *made.folder.rglob("*")):
        path.chmod(0o755)


@pytest.mark.parametrize(
    ("journal", "index"),
    [
        pytest.param(False, False, id="no journal"),
        pytest.param(True, True, id="journal and index"),
        pytest.param(True, False, id="journal alone"),
    ],
)
def test_a_read_only_home_can_be_looked_at(home: Home, journal: bool, index: bool) -> None:
    kept = home.close(journal, index)
    name = home.execution_id
    for words in (
        ("list",),
        ("status", name),
        ("events", name),
        ("explain", name),
        ("logs", name),
        ("replay", name, "--verify"),
        ("catalog",),
        ("credential", "list"),
    ):
        answer = home.ask(*words)
        assert answer.code == 0, (words, answer.err)
        assert answer.out or words[0] == "credential", words
    assert "hello" in home.ask("logs", name).out
    assert home.files() == kept


def test_what_would_write_says_that_it_may_not(home: Home, tmp_path: Path) -> None:
    kept = home.close(journal=False, index=False)
    for words in (("run", tmp_path / "playbook.yaml"), ("register", tmp_path / "playbook.yaml")):
        answer = home.ask(*words)
        assert answer.code == 3, words
        assert "is read-only; make it writable" in answer.err, answer.err
    assert home.files() == kept
