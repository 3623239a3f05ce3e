"""
How every process that the program starts comes to life, and how it ends with all that it started.

Each has a session of its own: a Ctrl-C at the terminal does not reach it, and it can be killed as
a group. It inherits no descriptor that it was not given, and no variable unless `env` says so.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Self

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
"""What a child gets of the system; no variable of the worker is among it (trust model)."""
INSIDE = str(Path(__file__).parent / "process")
"""Where the package `inside` lies: our programs that run without NoETL."""
NULL = subprocess.DEVNULL
PIPE = subprocess.PIPE
Stream = int | IO[bytes] | None
ROUNDS = 5
"""A process may start another while we look; each round looks again."""


def spawn(
    words: Sequence[str],
    *,
    stdin: Stream = NULL,
    stdout: Stream = NULL,
    stderr: Stream = NULL,
    fds: Sequence[int] = (),
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = ENVIRONMENT,
) -> "subprocess.Popen[bytes]":
    """Start a child; `env=None` hands on all variables of this process. Raises OSError."""
    return subprocess.Popen(
        words,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=fds,
        cwd=cwd,
        env=env,
        start_new_session=True,
    )


async def spawn_async(
    *words: str,
    stdin: Stream = NULL,
    stdout: Stream = PIPE,
    stderr: Stream = NULL,
    fds: Sequence[int] = (),
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = ENVIRONMENT,
) -> asyncio.subprocess.Process:
    """The same, watched by the event loop."""
    return await asyncio.create_subprocess_exec(
        *words,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=fds,
        cwd=cwd,
        env=env,
        start_new_session=True,
    )


def isolated(program: str, *words: str, python: str = sys.executable) -> list[str]:
    """The command line of a program of ours that runs without the packages of the worker."""
    return [python, "-I", "-S", "-c", program, *words]


def ourselves(*words: str) -> list[str]:
    """
    The command line of `noetl WORDS`. Without -P Python would look for modules in the folder that
    it is started in, and run those of a foreign project in a process that holds keys.
    """
    return [sys.executable, "-P", "-m", "noetl", *words]


class PipeEnds:
    """Pipes to a child: its ends are closed here once it has them, ours if it did not start."""

    def __init__(self) -> None:
        self.theirs = contextlib.ExitStack()
        self.ours = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_fault: object) -> None:
        self.theirs.close()
        if kind is not None:
            self.ours.close()

    def pipe(self, *, writes: bool = False) -> tuple[int, int]:
        """Our end, which never blocks, and the child's; with `writes` we write and it reads."""
        mine, its = os.pipe()[:: -1 if writes else 1]
        os.set_blocking(mine, False)
        self.ours.callback(os.close, mine)
        self.theirs.callback(os.close, its)
        return mine, its


def end_all(pid: int) -> None:
    """
    Kill a process, its group, and descendants that moved to a session of their own.

    The process adopts its orphans, so all of them hang below it as long as it lives: it is
    stopped first, the descendants are killed, then the group with the process itself.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        killed: set[int] = set()
        for _ in range(ROUNDS):
            found = descendants(pid) - killed
            if not found:
                break
            for one in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
            killed |= found
    end_group(pid)


def end_group(pid: int) -> None:
    """Kill a process and those of its group; its own exit must not have been waited for yet."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def descendants(pid: int) -> set[int]:
    """All processes below this one, dead ones too while nobody has waited for them."""
    below: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                # The name stands in brackets and may hold anything, brackets too.
                state = Path(f"/proc/{entry}/stat").read_bytes().rpartition(b")")[2].split()
                below.setdefault(int(state[1]), []).append(int(entry))
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        children = below.get(waiting.pop(), [])
        found.update(children)
        waiting += children
    return found
