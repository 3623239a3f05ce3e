"""Files and folders for their owner alone: whatever NoETL keeps is made here, 0700 and 0600."""

import os
from contextlib import suppress
from errno import ENOTDIR
from pathlib import Path
from stat import S_ISVTX

from noetl.late import late

FOLDER, FILE = 0o700, 0o600
OTHERS = 0o077
OWN = late(r"noetl[.].*|.*lock|key.*|token|contexts.toml|nats.*|postgres|libs|results|run")
"""What lies in a home, more or less."""
LISTED = 0o066
"""What lets others into a folder: those who cannot list it can only pass through."""


def private_folder(path: Path) -> bool:
    """
    Make a folder, and those above it that are missing, for its owner alone, whatever the umask.

    One that is there and belongs to us is closed to others; True says that it had been open.
    """
    if not path.is_dir():
        if not path.parent.is_dir():
            private_folder(path.parent)
        try:
            path.mkdir(FOLDER)
        except FileExistsError:
            if not path.is_dir():  # nobody was faster: it is a file
                raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), str(path)) from None
        path.chmod(FOLDER)  # a umask may have taken more than we ask for
    return _closed(path) if path.stat().st_mode & LISTED else False


def private_file(path: Path, flags: int) -> int:
    """Open a file, and make it if it is missing: for its owner alone, whatever the umask."""
    descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, FILE)
    with suppress(OSError):  # another's: `noetl doctor` tells of it
        mode = os.fstat(descriptor).st_mode
        if mode & OTHERS or mode & FILE != FILE:
            os.fchmod(descriptor, FILE)
    return descriptor


def private_in_place(path: Path) -> None:
    """
    The same without opening it: to close a file takes away every lock that this process has on it,
    and SQLite has some. What cannot be done here is said by whoever opens the file.
    """
    with suppress(OSError):
        os.mknod(path, FILE)
    with suppress(OSError):
        if path.stat().st_mode & OTHERS:
            path.chmod(FILE)


def open_to_others(path: Path) -> bool:
    """Whether somebody else may look into this file or folder."""
    mode = path.stat().st_mode
    return bool(mode & (LISTED if path.is_dir() else OTHERS))


def _is_ours(path: Path) -> bool:
    """A folder with other things in it, such as a project, stays as it is: `doctor` tells."""
    return all(OWN.fullmatch(one.name) for one in path.iterdir())


def _closed(path: Path) -> bool:
    found = path.stat()
    if found.st_uid != os.geteuid() or found.st_mode & S_ISVTX or not _is_ours(path):
        return False
    path.chmod(found.st_mode & FOLDER)
    return True
