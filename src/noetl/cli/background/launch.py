"""Programs of their own: started apart from the terminal, awaited until ready, and stopped."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from noetl.cli.background.voice import untimed
from noetl.cli.output import print_line
from noetl.errors import NoetlError
from noetl.node.pid_file import PidFile, RunningProcess
from noetl.private import private_file, private_folder
from noetl.settings import SETTINGS, Settings, shown
from noetl.tools.children import ourselves, spawn

LOOK = 0.05
"""Seconds between two looks at whether a program is ready, or has ended."""
LARGEST_LOG = 16 * 1024 * 1024
"""A log that is longer when its program starts is put aside as `.log.1`."""
TOLD_LINES = 20
"""Lines of the log that explain a program which did not start."""

LAST_WORD = "error: "
"""With it a program says why it ends."""

Says = Callable[[str], None]


class NotStarted(NoetlError):
    """The program ended before it was ready; the message ends with what it said."""


class Launched:
    """A program that was started in the background and is not ready yet."""

    def __init__(self, child: "subprocess.Popen[bytes]", log: Path, began: int) -> None:
        self.child = child
        self.log = log
        self._told = began

    def news(self) -> list[str]:
        """What it has written to its log since the last time, line by line."""
        with self.log.open("rb") as file:
            file.seek(self._told)
            whole = file.read().rpartition(b"\n")[0]
        self._told += len(whole) + 1 if whole else 0
        return whole.decode("utf-8", "replace").splitlines()


def launch(words: Sequence[str], log: Path, environment: Mapping[str, str]) -> Launched:
    """
    Start `noetl WORDS` in a session of its own, without a terminal, its output in the log.

    What is secret goes in the environment: a command line can be seen by every user.
    """
    private_folder(log.parent)
    if log.exists() and log.stat().st_size > LARGEST_LOG:
        log.replace(log.with_suffix(".log.1"))
    file = private_file(log, os.O_WRONLY | os.O_APPEND)
    try:
        began = os.fstat(file).st_size
        unbuffered = {**environment, "PYTHONUNBUFFERED": "1"}
        child = spawn(ourselves(*words), stdout=file, stderr=file, env=unbuffered)
    finally:
        os.close(file)
    return Launched(child, log, began)


NOT_PASSED = ("server", "token", "context")
"""Whom a command asks: no business of the server that it starts."""


def variables(settings: Settings) -> dict[str, str]:
    """Every setting that has a value, as a variable of another process."""
    found = {}
    for field in SETTINGS:
        value = getattr(settings, field)
        if value is not None and field not in NOT_PASSED:
            text = str(int(value)) if isinstance(value, bool) else str(value)
            found[f"NOETL_{field.upper()}"] = text
    return found


def used_by(settings: Settings) -> dict[str, str]:
    """What the server works with, as others on its home are told."""
    return {
        "database": str(shown("db", settings.db) or f"SQLite in {settings.home}"),
        "queue": str(shown("queue", settings.queue) or "none"),
        "auth": "tokens" if settings.auth else "off",
    }


def await_ready(
    launched: Launched,
    ready: Callable[[], RunningProcess | None],
    *,
    what: str,
    file: PidFile,
    patience: float,
    says: Says = lambda line: print_line(untimed(line), err=True),
) -> RunningProcess | None:
    """
    The program once it is ready, or None when patience has run out; it goes on then, and holds
    its pid file: whoever is told that it goes on can look at it and stop it.

    What it says meanwhile (that it waits for a database) is passed on; if it ends, NotStarted
    tells its last words, and nothing that was passed on already.
    """
    unsaid: list[str] = []
    until = time.monotonic() + patience
    while True:
        found = ready()
        unsaid += launched.news()
        if found is not None:
            return found
        if launched.child.poll() is not None:
            raise not_started(what, launched, unsaid + launched.news())
        while unsaid and not unsaid[0].startswith(LAST_WORD):
            says(unsaid.pop(0))
        if time.monotonic() >= until and file.running() is not None:
            return None
        time.sleep(LOOK)


def not_started(what: str, launched: Launched, said: list[str]) -> NotStarted:
    words = [line.removeprefix(LAST_WORD) for line in said[-TOLD_LINES:]]
    if len(words) == 1:
        return NotStarted(words[0])
    why = "\n".join(f"  {line}" for line in words) or "  (it said nothing)"
    code = launched.child.returncode
    return NotStarted(f"{what} ended with {code} before it was ready; {launched.log} says:\n{why}")


def stop(files: Sequence[PidFile], *, patience: float) -> list[RunningProcess]:
    """Tell the holders of pid files to end, and wait for them; those that there were."""
    told = [(file, running) for file in files if (running := file.running()) is not None]
    for _, running in told:
        tell_to_end(running)
    until = time.monotonic() + patience
    for file, running in told:
        while running.alive:
            if time.monotonic() >= until:
                raise NoetlError(
                    f"process {running.pid} has not ended after {patience:g} s: it lets its tasks "
                    "end (NOETL_DRAIN). Stop it again and it gives them back at once; its log: "
                    f"{file.log}"
                )
            time.sleep(LOOK)
    return [running for _, running in told]


def tell_to_end(running: RunningProcess) -> None:
    try:
        os.kill(running.pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        raise NoetlError(
            f"process {running.pid} belongs to another user; only its owner can stop it"
        ) from None


def follow(file: PidFile, *, follow: bool, lines: int | None, write: Says) -> bool:
    """Print a log, the last `lines` of it; with `follow` what comes, too, while it is held."""
    if not file.log.exists():
        return False
    with file.log.open("r", encoding="utf-8", errors="replace") as log:
        known = log.readlines()
        for line in known if lines is None else known[-lines:]:
            write(line.rstrip("\n"))
        while follow:
            held = file.running() is not None
            for line in log:
                write(line.rstrip("\n"))
            if not held:
                break
            time.sleep(LOOK)
    return True
