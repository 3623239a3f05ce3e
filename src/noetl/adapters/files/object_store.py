"""Objects as files: `<folder>/<execution>/<checksum>.json`."""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from noetl.adapters.threads import Threads
from noetl.ports.object_store import PIECE, Spool, StoreAway, StoreRefused
from noetl.private import private_file, private_folder

RESULTS = "results"
"""The folder below the home: a copy of it and of the database is a copy of all."""
PART = ".part"

T = TypeVar("T")


class FileObjectStore:
    """See `ObjectStore`. A disk is never away: what it refuses, it refuses until it is repaired."""

    name = "files"

    def __init__(self, folder: Path, *, suffix: str = ".json") -> None:
        self._suffix = suffix
        self.place = str(folder)
        self._folder = folder
        self._threads = Threads("noetl-files")

    async def put(self, key: str, body: Spool) -> None:
        try:
            await self._run(lambda: self._put(self._path(key), body))
        except FileNotFoundError as gone:  # another process removed the empty folder just now
            raise StoreAway(f"{gone.filename} no longer exists") from gone

    async def get(self, key: str, start: int = 0) -> AsyncIterator[bytes]:
        path, length = self._path(key), PIECE
        while length == PIECE:
            piece = await self._run(partial(_read, path, start))
            length = len(piece)
            start += length
            if piece:
                yield piece

    async def keys(self, prefix: str) -> list[str]:
        folder = self._folder / prefix
        return await self._run(lambda: [prefix + path.stem for path in folder.glob("*")])

    async def remove(self, keys: Sequence[str]) -> int:
        return await self._run(lambda: self._remove(keys))

    async def close(self) -> None:
        self._threads.close()

    async def _run(self, act: Callable[[], T]) -> T:
        try:
            return await self._threads.run(act)
        except FileNotFoundError:
            raise
        except OSError as refused:
            raise StoreRefused(
                f"{refused.strerror or refused}; free space or make the folder writable"
            ) from refused

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}{self._suffix}"

    def _put(self, path: Path, body: Spool) -> None:
        """Durable under its name: the file first, then the folder that names it."""
        if not _holds(path, body):
            private_folder(path.parent)
            part = path.with_name(f"{os.urandom(8).hex()}{PART}")
            try:
                with os.fdopen(private_file(part, os.O_WRONLY | os.O_EXCL), "wb") as file:
                    body.file.seek(0)
                    while piece := body.file.read(PIECE):
                        file.write(piece)
                    file.flush()
                    os.fsync(file.fileno())
                part.rename(path)
            finally:
                part.unlink(missing_ok=True)
        # Also of a file that was there: whoever wrote it may have died before this.
        _sync_folder(path.parent)

    def _remove(self, keys: Sequence[str]) -> int:
        gone = 0
        folders = {self._path(key).parent for key in keys}
        for key in keys:
            with suppress(FileNotFoundError):
                self._path(key).unlink()
                gone += 1
        for folder in folders:
            for part in folder.glob(f"*{PART}"):  # of a process that died
                part.unlink(missing_ok=True)
            with suppress(OSError):  # what is kept keeps the folder
                folder.rmdir()
        return gone


def _read(path: Path, start: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(PIECE)


def _holds(path: Path, body: Spool) -> bool:
    """Whether this very body is there; one that was damaged is not."""
    try:
        if path.stat().st_size != body.size:
            return False
        body.file.seek(0)
        with path.open("rb") as file:
            while piece := file.read(PIECE):
                if piece != body.file.read(PIECE):
                    return False
    except OSError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    """A new name is durable once its folder is; a new folder, once the one above is."""
    for named in (folder, folder.parent):
        descriptor = os.open(named, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
