"""Waiting for others at the file of a home: soon with a word, and not for ever."""

import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from noetl.adapters.sqlite.faults import OVER_SOON
from noetl.errors import LogUnavailable

FILE = "noetl.db"
LONGEST_PAUSE = 0.016
QUIET = 3.0
"""Seconds after which a wait is told: processes of NoETL hold a lock for milliseconds."""
PATIENCE = 60.0
JOURNAL_LOCK = "120"
"""The byte of the journal's index that whoever writes has locked."""
HELD_LOCK = ("number", "family", "strength", "kind", "process", "place", "first", "last")
"""What a line of /proc/locks says of a lock that is held."""

T = TypeVar("T")
Says = Callable[[str], None]


def to_stderr(words: str) -> None:
    """Where nobody else listens."""
    print(words, file=sys.stderr, flush=True)


class Locks:
    """What one process knows of the locks of others; `says` hears when a wait is long."""

    def __init__(self, folder: Path, *, patience: float = PATIENCE, says: Says = to_stderr) -> None:
        self._file = folder / FILE
        self._patience = patience
        self._says = says
        self._quiet = min(QUIET, patience / 2)

    def patiently(self, attempt: Callable[[], T]) -> T:
        """
        Try until no other process is in the way; LogUnavailable where one stays there.

        Short pauses of uneven length instead of SQLite's own waiting, which grows to 100 ms: with
        many processes at one home each gets its turn, and none sees a lock.
        """
        pause, began, told = 0.0005, time.monotonic(), False
        while True:
            try:
                answer = attempt()
            except OVER_SOON:
                waited = time.monotonic() - began
                if waited >= self._patience:
                    raise self._too_long() from None
                if not told and waited >= self._quiet:
                    told = True
                    self._says(f"waiting for {self._file}: {self._holder()} has locked it")
                time.sleep(pause * random.uniform(0.5, 1.5))
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                if told:
                    self._says(f"{self._file} is free again")
                return answer

    def _too_long(self) -> LogUnavailable:
        return LogUnavailable(
            f"{self._holder()} has locked {self._file} for more than {self._patience:g} s; let it "
            "end its transaction, or end it, and try again"
        )

    def _holder(self) -> str:
        """Who it is, as far as the system tells."""
        index = self._file.with_name(f"{FILE}-shm")
        with suppress(OSError, ValueError):
            inodes = {path.stat().st_ino: path for path in (self._file, index) if path.exists()}
            for line in Path("/proc/locks").read_text("utf-8").splitlines():
                words = line.split()
                if len(words) != len(HELD_LOCK):
                    continue  # whoever waits for a lock has a line of its own, with an arrow
                _, _, _, kind, pid, place, start, _ = words
                path = inodes.get(int(place.rpartition(":")[2]))
                ours = path == self._file or (path == index and start == JOURNAL_LOCK)
                if ours and kind == "WRITE" and int(pid) not in (0, os.getpid()):
                    return f"process {pid} ({_name_of(pid)})"
        return "another process"


def _name_of(pid: str) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").strip()
    return "not visible"
