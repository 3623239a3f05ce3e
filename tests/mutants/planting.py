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
import time
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
PATIENCE = 900
"""Seconds after which a test that hangs counts as failed; a fault may make one hang."""
IDLE, AWAKE = 60, 1.0
"""A quick test hangs if it spent less CPU than so many seconds in the last minute. Slow is no
fault: on a busy machine it takes minutes, and spends more. Tests that start processes wait."""
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
    hung: bool = False
    """Whether it was ended for that: a fault may do so, and so may a test that is too slow."""


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

    def tried(self, mutant: Mutant, first: str, seconds: int, *, quick: bool) -> Found:
        """Whether its tests fail; the one that noticed the fault before comes first."""
        path = self._source / "noetl" / mutant.file
        text = path.read_text()
        assert text.count(mutant.before) == 1, f"{mutant.file}: {mutant.before!r} is not there once"
        self._write(path, text.replace(mutant.before, mutant.after))
        try:
            if first:
                found = self._asked((first,), seconds, quick)
                if found.caught:
                    return found
            return self._asked(mutant.tests, seconds, quick)
        finally:
            self._write(path, text)

    def _write(self, path: Path, text: str) -> None:
        """With a time that no other text of this file had: bytecode goes by time and size."""
        path.write_text(text)
        at = path.stat().st_mtime + 2 * next(self._times)
        os.utime(path, (at, at))

    def _asked(self, tests: tuple[str, ...], seconds: int, quick: bool) -> Found:
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
            status = status_of(child, quick)
        finally:
            end_all()
        code = os.waitstatus_to_exitcode(status)
        assert code != BROKEN, f"no test could be run: {self._said.read_text()}"
        said = self._said.read_text("utf-8", "replace") if self._said.exists() else ""
        noticed = self._noticed.read_text() if self._noticed.exists() else ""
        if code < 0:
            return Found(True, f"it did not end (signal {-code})", noticed, hung=True)
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
        watch = Watch(self._noticed)
        try:
            return int(pytest.main([*WORDS, *tests], plugins=[watch]))
        except Exception:  # pytest, at its end, about what a test that failed left open
            if watch.failed:
                return 1
            raise


def status_of(child: int, quick: bool) -> int:
    """How it ended; it is made to if it hangs. The alarm of a process is its tests' own."""
    over = threading.Event()
    watching = threading.Thread(target=end_if_it_hangs, args=(child, over, quick), daemon=True)
    watching.start()
    try:
        return os.waitpid(child, 0)[1]
    finally:
        over.set()
        watching.join()


def end_if_it_hangs(child: int, over: threading.Event, quick: bool) -> None:
    began, spent = time.monotonic(), 0.0
    while not over.wait(IDLE):
        before, spent = spent, cpu_of(child)
        if (quick and spent - before < AWAKE) or time.monotonic() - began > PATIENCE:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            return


def cpu_of(pid: int) -> float:
    """Seconds of CPU, with those of the children that it has waited for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    ticks = stat.rpartition(")")[2].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


class Watch:
    """Writes down which test failed first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.failed = False

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """If it does not end, it was this one."""
        self._path.write_text(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed = True
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
