"""
A copy of the source in which one fault at a time stands, and processes that run tests on it.

The copy is made once and keeps its bytecode: a fault costs one file that is compiled again.
"""

import ctypes
import importlib
import os
import shutil
import signal
import sys
import threading
import traceback
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tests.mutants.mutant import Mutant

ROOT = Path(__file__).parents[2]
NOTICED = Path(__file__).with_name("noticed.json")
"""Which test noticed each fault the last time: it is asked first."""
PATIENCE, PATIENCE_WITH_QUICK = 900, 120
"""Seconds after which a test that hangs counts as failed: a fault may make one hang. Those of the
guarantees wait for leases; the others are quick, and whoever hangs in them uses no CPU."""
BROKEN = 70
"""What a child ends with that could not run tests."""
TOLD = 200
"""Characters of what a test says."""
WARM = ("pytest", "hypothesis", "msgspec", "jinja2", "yaml", "asyncpg", "nats", "psycopg", "httpx")
"""Imported before the first fault; nothing of ours, which is imported with its fault."""

WORDS = (
    *("-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of what is imported before
)


class Found(NamedTuple):
    """What came of one fault."""

    caught: bool
    says: str
    noticed: str
    """The test that failed."""


class Nursery:
    """The copy."""

    def __init__(self, folder: Path) -> None:
        self._source = folder / "src"
        self._said = folder / "said"
        self._noticed = folder / "noticed"
        self._times = count(1)
        shutil.copytree(ROOT / "src", self._source, ignore=shutil.ignore_patterns("ui"))
        with suppress(FileNotFoundError):
            (self._source / "noetl" / "ui").symlink_to(ROOT / "src" / "noetl" / "ui")
        for name in WARM:
            importlib.import_module(name)

    def tried(
        self, mutant: Mutant, first: str, seconds: int, patience: float = PATIENCE
    ) -> Found:
        """Whether its tests fail; the one that noticed the fault before comes first."""
        path = self._source / "noetl" / mutant.file
        text = path.read_text()
        assert text.count(mutant.before) == 1, f"{mutant.file}: {mutant.before!r} is not there once"
        self._write(path, text.replace(mutant.before, mutant.after))
        try:
            if first:
                found = self._asked((first,), seconds, patience)
                if found.caught:
                    return found
            return self._asked(mutant.tests, seconds, patience)
        finally:
            self._write(path, text)

    def _write(self, path: Path, text: str) -> None:
        """With a time that no other text of this file had: bytecode goes by time and size."""
        path.write_text(text)
        at = path.stat().st_mtime + 2 * next(self._times)
        os.utime(path, (at, at))

    def _asked(self, tests: tuple[str, ...], seconds: int, patience: float) -> Found:
        """A child process runs them, so that nothing of one fault is left."""
        for left in (self._said, self._noticed):
            left.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            code = BROKEN
            try:
                code = self._run(tests, seconds)
            except BaseException:
                traceback.print_exc()
            finally:  # whatever happens, it must not go on with what its parent does
                os._exit(code)
        try:
            status = status_of(child, patience)
        finally:
            end_all()
        code = os.waitstatus_to_exitcode(status)
        assert code != BROKEN, f"no test could be run: {self._said.read_text()}"
        said = self._said.read_text("utf-8", "replace") if self._said.exists() else ""
        noticed = self._noticed.read_text() if self._noticed.exists() else ""
        if code < 0:
            return Found(True, f"it did not end (signal {-code})", noticed)
        return Found(code == 1, words_of(said), noticed)

    def _run(self, tests: tuple[str, ...], seconds: int) -> int:
        import resource

        import pytest

        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        sys.path.insert(0, str(self._source))
        os.environ["PYTHONPATH"] = str(self._source)
        said = os.open(self._said, os.O_WRONLY | os.O_CREAT)
        os.dup2(said, 1)
        os.dup2(said, 2)
        return int(pytest.main([*WORDS, *tests], plugins=[Watch(self._noticed)]))


def status_of(child: int, patience: float) -> int:
    """How it ended; it is made to after so many seconds. The alarm of a process is its tests' own."""
    late = threading.Timer(patience, os.kill, (child, signal.SIGKILL))
    late.start()
    try:
        return os.waitpid(child, 0)[1]
    finally:
        late.cancel()


class Watch:
    """Writes down which test failed first."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """If it does not end, it was this one."""
        self._path.write_text(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._path.write_text(report.nodeid)


def words_of(said: str) -> str:
    """The first line that says what was wrong; without one, the last of all."""
    lines = [line[1:].strip() for line in said.splitlines() if line.startswith("E  ")]
    return next(filter(None, [*lines, *said.splitlines()[-1:]]), "")[:TOLD]


def end_all() -> None:
    """
    Also the servers and workers that a test left when it failed: they have become ours.

    Whichever ends first is waited for: the first process of a namespace ends after all others
    of it, and these must be waited for before.
    """
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while left := [int(pid) for pid in children.read_text().split()]:
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(-1, 0)


def adopt_orphans() -> None:
    """Whoever loses its parent below this process becomes its child (prctl 36)."""
    assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0


def keep_bytecode() -> None:
    """Also where the environment forbids it: each fault would compile all modules again."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def noticed_before() -> dict[str, str]:
    """Words of a fault → the test that noticed it."""
    return msgspec.json.decode(NOTICED.read_bytes(), type=dict[str, str])


def write_noticed(tests: dict[str, str]) -> None:
    text = msgspec.json.format(msgspec.json.encode(dict(sorted(tests.items()))), indent=2)
    NOTICED.write_bytes(text + b"\n")
