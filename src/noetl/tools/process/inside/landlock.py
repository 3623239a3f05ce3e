"""
What bounds a process where the kernel gives it no namespaces: Landlock, which needs no rights.

A process within cannot read the memory or the environment of one outside, nor signal it, whoever
it runs as; and it opens no file that was not granted. There is no way out, for its children
neither.
"""

import ctypes
import os

from .namespaces import checked, libc

CREATE, ADD, RESTRICT = 444, 445, 446
"""Numbers of system calls, the same on every machine."""
VERSION, BENEATH = 1, 1
NO_NEW_PRIVILEGES = 38
"""Of prctl(2)."""
READING = 0b1 | 0b100 | 0b1000
"""Rights to execute and read a file, and to list a folder."""
FOR_FILES = 0b1 | 0b10 | 0b100 | 1 << 14
"""Rights that a file can have: to be executed, written, read, cut."""
RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
"""The version of Landlock → its rights for files and folders; later ones have more than we need."""
SCOPES = 6
"""The version from which on signals and abstract sockets can be kept inside."""


class Beneath(ctypes.Structure):
    """struct landlock_path_beneath_attr."""

    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("folder", ctypes.c_int32))


def version() -> int:
    """Of the Landlock that the kernel has; 0 or less where it has none."""
    return int(libc.syscall(CREATE, None, ctypes.c_size_t(0), VERSION))


def shield(private: list[str], shown: list[str], *, writes: bool = False) -> None:
    """
    Everything can be reached but what is private; of that, what is shown can be read, and written
    only by who `writes` there. Raises OSError.

    There are grants and no refusals: in a folder that holds something private, what is there now
    is granted, and what is made there later is not.
    """
    known = version()
    rights = RIGHTS[max(1, min(known, max(RIGHTS)))]
    told = (ctypes.c_uint64 * 3)(rights, 0, 0b11 if known >= SCOPES else 0)
    size = ctypes.c_size_t(24 if known >= SCOPES else 8)
    rules = libc.syscall(CREATE, told, size, 0)
    checked(min(rules, 0))
    for path in granted("/", private):
        grant(rules, path, rights)
    for path in shown:
        grant(rules, path, rights if writes else READING)
    checked(libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    checked(libc.syscall(RESTRICT, rules, 0))
    os.close(rules)


def granted(folder: str, private: list[str]) -> list[str]:
    """The folder, or, where something below it is private, what else lies in it."""
    if folder in private:
        return []
    inside = folder.rstrip("/") + "/"
    if not any(path.startswith(inside) for path in private):
        return [folder]
    try:
        with os.scandir(folder) as entries:
            # Where a link leads is granted by its own name, or it is private.
            names = [entry.path for entry in entries if not entry.is_symlink()]
    except OSError:
        return []
    return [path for name in names for path in granted(name, private)]


def grant(rules: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # gone meanwhile, or not ours
        return
    if not os.path.isdir(path):
        rights &= FOR_FILES
    beneath = Beneath(rights, opened)
    checked(libc.syscall(ADD, rules, BENEATH, ctypes.byref(beneath), 0))
    os.close(opened)
