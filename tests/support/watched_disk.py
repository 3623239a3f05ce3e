"""A disk that tells what was written and what was made durable, in order (T20)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw


class Seen:
    """What happened to each file: whether its last write has been followed by a sync."""

    def __init__(self) -> None:
        self.dirty: dict[str, bool] = {}
        self.writes = 0
        self.syncs = 0

    @property
    def safe(self) -> bool:
        """Whether all that was written to the log would survive the loss of power."""
        return not any(dirty for name, dirty in self.dirty.items() if name.endswith("-wal"))


class _File(apsw.VFSFile):
    def __init__(self, seen: Seen, below: str, name: Any, flags: list[int]) -> None:
        super().__init__(below, name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._name = Path(path or "temporary").name
        self._seen = seen

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._seen.writes += 1
        self._seen.dirty[self._name] = True

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._seen.syncs += 1
        self._seen.dirty[self._name] = False


class _Disk(apsw.VFS):
    def __init__(self, seen: Seen, below: str) -> None:
        self._seen = seen
        self._below = below
        super().__init__("watched", below, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> _File:
        return _File(self._seen, self._below, name, flags)


@contextmanager
def watched_disk() -> Iterator[Seen]:
    """Every database that is opened inside lies on the watched disk."""
    seen, before = Seen(), apsw.vfs_names()[0]
    disk = _Disk(seen, before)
    try:
        yield seen
    finally:
        disk.unregister()
        apsw.set_default_vfs(before)
