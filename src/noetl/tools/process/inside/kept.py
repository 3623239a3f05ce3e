"""What must be the same before and after a call, so that no call sees another."""

from __future__ import annotations

import os
import sys

# By name, since code may replace what the module holds.
from _thread import _count as count_threads

from .limits import has_children

TYPE_CHECKING = False  # `typing` takes longer to load than all the rest
if TYPE_CHECKING:
    from typing import Any

FORGOTTEN = ("logging", "random")
"""Modules with a state, which others bring along: who imports them finds them new."""
INNER = ("codecs", "copyreg", "encodings", "errno", "io", "keyword", "posix", "reprlib", "stat")
"""Modules that no code has a reason to change; a look at them takes longer than a call."""
RECURSION, DIGITS = 1_000, 4_300


class Kept:
    """A picture of the process, taken while no code has run that could have changed it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._take()

    def _take(self) -> None:
        for name in FORGOTTEN:
            sys.modules.pop(name, None)
        environ: dict[Any, Any] = vars(os.environ)["_data"]
        public = [vars(sys.modules[name]) for name in sys.modules if is_public(name)]
        watched = [*public, environ, sys.modules]
        self._modules = set(sys.modules)
        self._names = [(names.values(), list(names.values())) for names in watched]
        self._lists = [(part, list(part)) for part in (sys.path, sys.meta_path, sys.path_hooks)]
        self._files = os.listdir("/proc/self/fd")

    def learn(self, modules: list[str]) -> None:
        """Load modules that code is going to need, before it runs, and keep them."""
        new = [name for name in modules if name not in sys.modules]
        for name in new:
            __import__(name)
            if name == "asyncio":  # makes much of itself at its first use
                loaded = sys.modules[name]
                loaded.run(loaded.to_thread(int))
        if new:
            self._take()

    def find(self, libs: str) -> None:
        """Let code import what is installed in this folder."""
        sys.path.insert(0, libs)
        self._take()

    @staticmethod
    def alone() -> bool:
        """Whether no thread and no process was left behind."""
        return not count_threads() and not has_children()

    def restore(self) -> bool:
        """Make modules, folder and limits new again; False if something stays changed."""
        if not self.alone():
            return False
        foreign = self._drop_modules()
        sys.setrecursionlimit(RECURSION)
        sys.set_int_max_str_digits(DIGITS)
        return not foreign and self._same() and self._empty_folder()

    def _drop_modules(self) -> list[str]:
        """What was imported goes; those that are not Python's own often do not load twice."""
        new = sys.modules.keys() - self._modules
        for name in new:
            del sys.modules[name]
        return [name for name in new if name.partition(".")[0] not in OWN]

    def _same(self) -> bool:
        return (
            all([*now] == then for now, then in self._names)  # a third of the time of two dicts
            and all(now == then for now, then in self._lists)
            and os.listdir("/proc/self/fd") == self._files
        )

    def _empty_folder(self) -> bool:
        os.umask(0o077)
        try:
            os.chdir(self._folder)
            empty(self._folder)
        except OSError:
            return False
        return True


OWN = frozenset((*sys.stdlib_module_names, "task"))


def is_public(module: str) -> bool:
    parts = module.split(".")
    return parts[0] not in INNER and not any(part[0] == "_" for part in parts)


def empty(folder: str) -> None:
    """Remove all within, never following a link out of it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                empty(entry.path)
                os.rmdir(entry.path)
            else:
                os.unlink(entry.path)
