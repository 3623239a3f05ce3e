"""How a process ends together with all that it started."""

import contextlib
import os
import signal
from pathlib import Path

ROUNDS = 5
"""A process may start another while we look; each round looks again."""


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
