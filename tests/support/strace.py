"""What the kernel saw of a program and all that it started, in order."""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

WITHOUT = "strace is not installed (as root: sh tests/support/install.sh)"
CALL = re.compile(r"^(?P<pid>\d+) +(?:(?P<name>\w+)\(|<\.\.\. (?P<over>\w+) resumed>)(?P<rest>.*)$")
SYNCS = ("fsync", "fdatasync")


class Seen(NamedTuple):
    """A system call of one of the processes."""

    pid: int
    name: str
    rest: str
    over: bool
    """Whether it had returned; of one in the middle of which another process was seen, later."""

    @property
    def is_sync(self) -> bool:
        """Whether it has brought the journal to the disk."""
        return self.over and self.on_journal and self.name.rpartition(" ")[2] in SYNCS

    @property
    def on_journal(self) -> bool:
        return "-wal>" in self.rest


def strace(log: Path, *calls: str) -> tuple[str, ...]:
    """The words before a command whose system calls are to be seen."""
    assert shutil.which("strace"), WITHOUT
    seen = f"trace={','.join(calls)}"
    return ("strace", "-f", "--seccomp-bpf", "-y", "-s", "4096", "-e", seen, "-o", str(log))


def seen_in(log: Path) -> list[Seen]:
    return list(_calls(log.read_text("utf-8", "replace").splitlines()))


def _calls(lines: Iterable[str]) -> Iterable[Seen]:
    begun: dict[int, str] = {}
    for line in lines:
        if match := CALL.match(line):
            pid, rest = int(match["pid"]), match["rest"]
            over = not rest.endswith("<unfinished ...>")
            if not over:
                begun[pid] = rest
            elif match["over"]:
                rest = begun.pop(pid, "") + rest
            yield Seen(pid, match["name"] or f"end of {match['over']}", rest, over)
