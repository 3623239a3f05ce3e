"""Bodies as files below the home: `<folder>/<execution_id>/<sha256>.json`."""

import asyncio
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from noetl.adapters.bodies import KEY, checked_id, describe, lost, opened, shape_of, verified
from noetl.errors import LogUnavailable
from noetl.messages.reference import Reference

STORE = "files"
RESULTS = "results"
"""The folder below the home: a copy of it and of the database is a copy of all."""
PART = ".part"
PIECE = 262_144
T = TypeVar("T")


class FileBodyWriter:
    """BodyWriter; a file that gets its name, which is its checksum, when it is whole."""

    def __init__(self, folder: Path, execution_id: str) -> None:
        self._folder = folder / execution_id
        self._execution_id = execution_id
        self._path = self._folder / f"{secrets.token_hex(8)}{PART}"
        self._file: BinaryIO | None = None
        self._hash = hashlib.sha256()
        self._size = 0
        self._shape = "null"

    def write(self, piece: bytes) -> None:
        if not piece:
            return
        if self._file is None:
            self._shape = shape_of(piece)
        try:
            _on_disk(self._folder, lambda: self._begun().write(piece))
        except LogUnavailable:  # what was written of it keeps room from others
            self.discard_now()
            raise
        self._hash.update(piece)
        self._size += len(piece)

    async def finish(self, schema_hint: str | None = None) -> Reference:
        return await asyncio.to_thread(self.finish_now, schema_hint or self._shape)

    async def discard(self) -> None:
        await asyncio.to_thread(self.discard_now)

    def finish_now(self, schema_hint: str | None) -> Reference:
        """Make it durable under its name: the file first, then the folder that names it."""
        checksum = self._hash.hexdigest()
        try:
            _on_disk(self._folder, lambda: self._keep(checksum))
        except LogUnavailable:
            self.discard_now()
            raise
        key = f"{self._execution_id}/{checksum}"
        return Reference(STORE, key, self._size, checksum, schema_hint=schema_hint)

    def discard_now(self) -> None:
        """Leave nothing behind."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._path.unlink(missing_ok=True)

    def _begun(self) -> BinaryIO:
        if self._file is None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = self._path.open("xb")
        return self._file

    def _keep(self, checksum: str) -> None:
        file = self._begun()
        file.flush()
        os.fsync(file.fileno())
        file.close()
        self._path.rename(self._folder / f"{checksum}.json")
        _sync_folder(self._folder)


class FileResultStore:
    """ResultStore; see its contract."""

    name = STORE

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, execution_id: str, body: bytes) -> Reference:
        return await asyncio.to_thread(self.put_now, execution_id, body)

    def put_now(self, execution_id: str, body: bytes) -> Reference:
        writer, hint = self.open(execution_id), describe(body)
        writer.write(body)
        return writer.finish_now(hint)

    def open(self, execution_id: str) -> FileBodyWriter:
        return FileBodyWriter(self._folder, checked_id(execution_id))

    async def fetch(self, reference: Reference) -> Any:
        return await asyncio.to_thread(self.fetch_now, reference)

    def fetch_now(self, reference: Reference) -> Any:
        path = self._path(reference)
        try:
            body = path.read_bytes()
        except OSError as refused:
            lost(reference, f"cannot be read: {refused.strerror}")
        return opened(reference, body)

    def pieces(self, reference: Reference) -> Iterator[bytes]:
        return verified(reference, self._read(reference))

    def _read(self, reference: Reference) -> Iterator[bytes]:
        path = self._path(reference)
        try:
            with path.open("rb") as file:
                while piece := file.read(PIECE):
                    yield piece
        except OSError as refused:
            lost(reference, f"cannot be read: {refused.strerror}")

    def _path(self, reference: Reference) -> Path:
        key = KEY.fullmatch(reference.key)
        if reference.store != STORE or key is None:
            lost(reference, "is not one of this store")
        return self._folder / key[1] / f"{key[2]}.json"

    def close(self) -> None:
        """Nothing is held open."""

    async def remove(self, execution_id: str, keep: frozenset[str] = frozenset()) -> int:
        return await asyncio.to_thread(self._remove_now, checked_id(execution_id), keep)

    def _remove_now(self, execution_id: str, keep: frozenset[str]) -> int:
        folder = self._folder / execution_id
        removed = 0
        for path in folder.glob("*"):
            if f"{execution_id}/{path.stem}" not in keep:
                path.unlink(missing_ok=True)
                removed += path.suffix != PART
        with suppress(OSError):  # what is kept keeps the folder
            folder.rmdir()
        return removed


def _sync_folder(folder: Path) -> None:
    """A new name is durable once its folder is; a new folder, once the one above is."""
    for named in (folder, folder.parent):
        descriptor = os.open(named, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _on_disk(folder: Path, act: Callable[[], T]) -> T:
    try:
        return act()
    except OSError as refused:
        raise LogUnavailable(
            f"a result cannot be stored in {folder}: {refused.strerror or refused}; free space or "
            "make the folder writable, and try again"
        ) from refused
