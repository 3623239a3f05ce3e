"""Whether a process still lives, even if its number was given to another one since."""

import os
from pathlib import Path
from typing import NamedTuple, Self

GONE = "ZX"
"""States of a process that has ended and only waits to be struck from the table."""


class Process(NamedTuple):
    """A process, told apart from a later one of the same number by when it began."""

    pid: int
    ticks: int | None = None
    """Its start, in clock ticks since the machine began; None where the system does not tell."""
    boot: str | None = None
    """The run of the machine in which it began."""

    @classmethod
    def this(cls) -> Self:
        """The process that asks."""
        seen = _state_and_start(os.getpid())
        return cls(os.getpid(), None if seen is None else seen[1], _boot())

    def alive(self) -> bool:
        """Whether it still runs."""
        if self.boot is not None and self.boot != _boot():
            return False
        seen = _state_and_start(self.pid)
        if seen is not None and self.ticks is not None:
            return seen[1] == self.ticks and seen[0] not in GONE
        if seen is None and self.ticks is not None:
            return False
        return _answers(self.pid)


def _state_and_start(pid: int) -> tuple[str, int] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # The second field is the program's name in brackets and may itself hold brackets and spaces.
    fields = text[text.rindex(")") + 2 :].split()
    return fields[0], int(fields[19])


def _boot() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()
    except OSError:
        return None


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
