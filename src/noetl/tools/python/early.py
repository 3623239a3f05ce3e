"""
A child that is started before anybody has asked: while the playbook is still being read.

It is like every other, with the same places hidden; whoever starts children with the same
parameters takes it first. One that nobody takes ends with the process, and its folder with it.
"""

import atexit
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from noetl.tools.process.folders import Folders
from noetl.tools.python.child import HiddenPlaces, StartedChild, start
from noetl.tools.python.libs import folder_of_libs

KIND = re.compile(rb"kind['\"]?\s*:\s*['\"]?python\b")
"""How a text says that it will need one; a mistaken guess costs a process, and nothing else."""


class EarlyChild(NamedTuple):
    """A child that waits, with what it was started by."""

    python: str
    mode: str
    hidden: HiddenPlaces
    folders: Folders
    folder: str
    started: StartedChild


_waiting: list[EarlyChild] = []


def hidden_places(home: Path, private: Sequence[str]) -> HiddenPlaces:
    """What children do not see, and of that what they may (decision 0047)."""
    return HiddenPlaces(list(private), [str(folder_of_libs(home).resolve())] if private else [])


def start_early(
    text: bytes,
    home: Path,
    *,
    namespaces: str,
    private: Sequence[str],
    python: str = sys.executable,
) -> None:
    """
    Start one if the text has a `python` task. Not where the home is not there yet: what is made
    after a child has started would not be hidden from it.
    """
    if _waiting or not folder_of_libs(home).is_dir() or KIND.search(text) is None:
        return
    folders, hidden = Folders("python"), hidden_places(home, private)
    with suppress(OSError):  # the first call will say it
        folder = folders.new()
        started = start(python, folder, namespaces, hidden)
        _waiting.append(EarlyChild(python, namespaces, hidden, folders, folder, started))
        atexit.register(end_early)


def take_early(python: str, mode: str, hidden: HiddenPlaces) -> EarlyChild | None:
    """The one that waits, if it is what would be started now."""
    if _waiting and _waiting[0][:3] == (python, mode, hidden):
        return _waiting.pop()
    return None


def end_early() -> None:
    """Nobody took it."""
    while _waiting:
        early = _waiting.pop()
        early.started.end()
        shutil.rmtree(early.folder, ignore_errors=True)
        early.folders.close()
