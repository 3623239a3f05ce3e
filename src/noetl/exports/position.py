"""How far a continuous export has come: kept in a file, whole or not at all (decision 0064)."""

import fcntl
import os
from pathlib import Path
from typing import Self

import msgspec

from noetl.errors import NoetlError
from noetl.exports.files import telling, write_durably
from noetl.private import private_file, private_folder

VERSION = 1


class OpenAt(msgspec.Struct, frozen=True, array_like=True):
    """How far an execution was handed over that may go on."""

    seq: int
    started_at: str


class Position(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Up to where each execution was handed over."""

    version: int = VERSION
    form: str
    open: dict[str, OpenAt] = {}
    """Executions that were not handed over up to their end."""
    done: dict[str, str] = {}
    """Those that were, and started since the horizon → when they started."""
    horizon: str = ""
    """Whatever started before, and neither runs nor is open, was handed over."""
    segment: int = 0
    """How many files were written."""


class PositionFile:
    """One exporter at a time has it open; what it saves is durable when it returns."""

    def __init__(self, path: Path, form: str) -> None:
        self._path = path
        self._form = form
        self._lock = -1

    def __enter__(self) -> Self:
        lock = self._path.with_name(f"{self._path.name}.lock")
        with telling(lock):
            if not self._path.parent.is_dir():  # one that is there is its owner's to open
                private_folder(self._path.parent)
            self._lock = private_file(lock, os.O_RDWR)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise NoetlError(
                f"another export uses {self._path}; stop it, or give this one a --position of "
                "its own"
            ) from None
        return self

    def __exit__(self, *_fault: object) -> None:
        os.close(self._lock)

    def read(self, since: str = "") -> Position:
        """Where the last export ended; a new one begins at `since`, or with the whole log."""
        try:
            found = msgspec.json.decode(self._path.read_bytes(), type=Position)
        except FileNotFoundError:
            return Position(form=self._form, horizon=since)
        except (OSError, msgspec.DecodeError) as wrong:
            raise NoetlError(
                f"{self._path} cannot be read as a position: {wrong}; remove it to export "
                "everything again"
            ) from None
        if found.version != VERSION or found.form != self._form:
            raise NoetlError(
                f"{self._path} is the position of another export ({found.form}); give this one a "
                "--position of its own"
            )
        return found

    def save(self, position: Position) -> None:
        write_durably(self._path, msgspec.json.encode(position))
