"""Programs of their own: what they say while one waits for them, and how they are ended."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from noetl.cli.background.launch import (
    LARGEST_LOG,
    Launched,
    NotStarted,
    await_ready,
    follow,
    launch,
    stop,
    variables,
)
from noetl.cli.background.voice import untimed
from noetl.errors import NoetlError
from noetl.node.pid_file import PidFile, RunningProcess
from noetl.settings import Settings

ME = RunningProcess(pid=1, ticks=None, boot=None, started_at=0)


def speaking(log: Path, code: str, *words: str) -> Launched:
    """A program that writes to the log, and is no NoETL."""
    with log.open("ab") as file:
        began = file.tell()
        child = subprocess.Popen([sys.executable, "-c", code, *words], stdout=file, stderr=file)
    return Launched(child, log, began)


def test_what_it_says_is_passed_on_until_it_is_ready(tmp_path: Path) -> None:
    log = tmp_path / "log"
    said: list[str] = []
    log.write_text("of yesterday\n")
    launched = speaking(log, "print('waiting for it', flush=True); import time; time.sleep(600)")
    try:
        found = await_ready(
            launched,
            lambda: ME if said else None,
            what="the server",
            file=PidFile(tmp_path, "server"),
            says=said.append,
            patience=60,
        )
    finally:
        launched.child.kill()
        launched.child.wait()
    assert (found, said) == (ME, ["waiting for it"])


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit('error: the port is taken')", "the port is taken"),
        ("raise SystemExit(1)", r"\(it said nothing\)"),
    ],
)
def test_one_that_ends_before_tells_why(tmp_path: Path, code: str, said: str) -> None:
    launched = speaking(tmp_path / "log", code)
    with pytest.raises(NotStarted, match=f"(?s)^{said}$|{said}"):
        await_ready(
            launched,
            lambda: None,
            what="the server",
            file=PidFile(tmp_path, "server"),
            says=lambda _: None,
            patience=60,
        )


@pytest.mark.parametrize("between", ["", "; time.sleep(0.3)"])
def test_every_line_of_one_that_ends_is_told_once(tmp_path: Path, between: str) -> None:
    says = f"import time; print('it waits', flush=True){between}"
    code = f"{says}; raise SystemExit('error: the port is taken')"
    launched, said = speaking(tmp_path / "log", code), list[str]()
    with pytest.raises(NotStarted) as wrong:
        await_ready(
            launched,
            lambda: None,
            what="the server",
            file=PidFile(tmp_path, "server"),
            says=said.append,
            patience=60,
        )
    told = "\n".join([*said, str(wrong.value)])
    assert told.count("it waits") == told.count("the port is taken") == 1


HOLDS = """
import sys, time
from pathlib import Path
from noetl.node.pid_file import PidFile
while not Path(sys.argv[2]).exists(): time.sleep(0.01)
with PidFile(Path(sys.argv[1]), "server").held("a server"): time.sleep(600)
"""


def test_patience_ends_and_the_program_goes_on(tmp_path: Path) -> None:
    """Nobody is told that it goes on before it can be looked at and stopped."""
    file, may_hold = PidFile(tmp_path, "server"), tmp_path / "may hold"
    launched = speaking(tmp_path / "log", HOLDS, str(tmp_path), str(may_hold))
    looks = 0

    def ready() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            may_hold.touch()

    try:
        waiting = await_ready(
            launched, ready, what="it", file=file, says=lambda _: None, patience=0
        )
        assert waiting is None
        assert launched.child.poll() is None
        running = file.running()
        assert running is not None
        assert running.pid == launched.child.pid
    finally:
        launched.child.kill()
        launched.child.wait()


def test_a_program_has_a_session_and_a_log_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "run" / "server.log"
    launched = launch(["--version"], log, dict(os.environ))
    assert launched.child.wait(600) == 0
    assert launched.news() == ["noetl 0.1.0"]
    assert launched.news() == []
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_log_that_has_grown_too_long_is_put_aside(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with log.open("wb") as file:
        file.truncate(LARGEST_LOG + 1)
    launch(["--version"], log, dict(os.environ)).child.wait(600)
    assert log.read_text() == "noetl 0.1.0\n"
    assert (tmp_path / "server.log.1").stat().st_size == LARGEST_LOG + 1


# ── stopping ─────────────────────────────────────────────────────────────────────────────────

HELD = """
import signal, sys
from pathlib import Path
from noetl.node.pid_file import PidFile
def told(*_): raise SystemExit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN if sys.argv[2] == "deaf" else told)
with PidFile(Path(sys.argv[1]), "server").held("a server"):
    print("held", flush=True)
    signal.pause()
"""


@pytest.fixture
def holders() -> Iterator[list["subprocess.Popen[bytes]"]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for one in started:
        one.kill()
        one.communicate()


def hold(home: Path, how: str, holders: list["subprocess.Popen[bytes]"]) -> PidFile:
    words = [sys.executable, "-c", HELD, str(home), how]
    holder = subprocess.Popen(words, stdout=subprocess.PIPE)
    holders.append(holder)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    return PidFile(home, "server")


def test_a_holder_is_told_and_waited_for(
    tmp_path: Path, holders: list["subprocess.Popen[bytes]"]
) -> None:
    file = hold(tmp_path, "obeys", holders)
    assert [one.pid for one in stop([file], patience=60)] == [holders[0].pid]
    assert file.running() is None
    assert stop([file], patience=60) == []


def test_one_that_does_not_end_is_not_waited_for_for_ever(
    tmp_path: Path, holders: list["subprocess.Popen[bytes]"]
) -> None:
    file = hold(tmp_path, "deaf", holders)
    with pytest.raises(NoetlError, match=f"process {holders[0].pid} has not ended after 0 s"):
        stop([file], patience=0)
    assert file.running() is not None


def test_one_of_somebody_else_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, number: int) -> None:
        assert (pid, number) == (os.getpid(), signal.SIGTERM)
        raise PermissionError

    with PidFile(tmp_path, "server").held("a server"):
        monkeypatch.setattr(os, "kill", refuse)
        with pytest.raises(NoetlError, match="belongs to another user"):
            stop([PidFile(tmp_path, "server")], patience=0)


# ── logs and settings ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("lines", "shown"), [(None, ["a", "b", "c"]), (2, ["b", "c"])])
def test_a_log_is_shown_from_its_end(tmp_path: Path, lines: int | None, shown: list[str]) -> None:
    file = PidFile(tmp_path, "server")
    file.log.parent.mkdir()
    file.log.write_text("a\nb\nc\n")
    for following in (False, True):  # nobody holds it: there is nothing to wait for
        seen: list[str] = []
        assert follow(file, follow=following, lines=lines, write=seen.append)
        assert seen == shown
    assert not follow(PidFile(tmp_path, "none"), follow=False, lines=None, write=print)


def test_settings_travel_by_the_environment() -> None:
    settings = Settings(
        home=Path("/h"), db="postgresql://a:b@c/d", auth=True, server="http://x", token="t"
    )
    told = variables(settings)
    assert (told["NOETL_HOME"], told["NOETL_AUTH"]) == ("/h", "1")
    assert told["NOETL_DB"] == "postgresql://a:b@c/d"
    assert not {"NOETL_SERVER", "NOETL_TOKEN", "NOETL_QUEUE"} & set(told)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [("2026-01-01T00:00:00.000Z it waits", "it waits"), ("error: no", "error: no")],
)
def test_a_line_without_its_time(line: str, sentence: str) -> None:
    assert untimed(line) == sentence
