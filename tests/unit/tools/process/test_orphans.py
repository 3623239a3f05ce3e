"""Whatever was forked ends with its parent, at whichever moment that is killed."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from noetl.tools.children import INSIDE
from noetl.tools.process.inside.namespaces import allowed, flags_here

PATIENCE = 600.0

TOO_EARLY = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from inside import namespaces

real, (ended, alive) = os.fork, os.pipe()

def fork():
    pid = real()
    if pid == 0:
        os.close(alive)
        os.read(ended, 1)  # returns when the parent is no more
    else:
        os.write(1, f"{pid}\\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)
    return pid

os.fork = fork
if sys.argv[2] == "fork":
    namespaces.fork_bound()
else:
    namespaces.confine(sys.argv[2], os.getppid(), (), [], [])
signal.pause()
"""
"""A process that is killed as soon as it has forked; the other one goes on after that."""

WORKER = """
import asyncio, os, sys
from noetl.tools.python.child import PythonChild, start

async def main():
    child = PythonChild(start(sys.executable, sys.argv[1], sys.argv[2]), sys.argv[1])
    while not (below := under(os.getpid())):
        await asyncio.sleep(0)
    print(*below, flush=True)
    await child.ended

def under(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as found:
        own = [int(one) for one in found.read().split()]
    return own + [deeper for one in own for deeper in under(one)]

asyncio.run(main())
"""
"""A worker with one warm child: tells the numbers of all processes below it, and stays."""


def gone(pids: list[int]) -> bool:
    """Waits until none of them is there any more."""
    for pid in pids:
        try:
            watched = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if not select.select([watched], [], [], PATIENCE)[0]:
                signal.pidfd_send_signal(watched, signal.SIGKILL)
                return False
        finally:
            os.close(watched)
    return True


# The first fork of `known` is number 1 of a namespace, where the kernel allows one.
HOW = ["fork", "auto", *(["known"] if allowed(flags_here(), [], []) else [])]


@pytest.mark.parametrize("how", HOW)
def test_a_parent_that_is_killed_at_once_leaves_nobody(how: str) -> None:
    words = [sys.executable, "-I", "-S", "-c", TOO_EARLY, INSIDE, how]
    killed = subprocess.run(words, stdout=subprocess.PIPE, check=False, timeout=PATIENCE)
    assert killed.returncode == -signal.SIGKILL
    assert gone([int(one) for one in killed.stdout.split()])


@pytest.mark.parametrize("mode", ["off", "auto"])
def test_a_worker_that_is_killed_leaves_no_child(mode: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", WORKER, str(tmp_path), mode]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        below = [int(one) for one in worker.stdout.readline().split()]
        worker.kill()
    assert below
    assert gone(below)
