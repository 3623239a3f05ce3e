"""
A file that appears whole or not at all, whatever happens while it is written. A new one is for its
owner alone, as the log is that it comes from; one that was there keeps its mode.
"""

import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from noetl.errors import UnwritableFile
from noetl.exports.export import ExportBody
from noetl.private import private_file


async def write_file(path: Path, bodies: AsyncIterator[ExportBody]) -> None:
    """Write bodies one after the other; a pipe or a device takes them as they come."""
    with telling(path):
        special = path.exists() and not path.is_file() and not path.is_dir()
        if special:
            await pour(path, bodies)
    if not special:
        with replacing(path) as part:
            await pour(part, bodies)


async def pour(path: Path, bodies: AsyncIterator[ExportBody]) -> None:
    """Fill a file, which is there from the first byte on."""
    with path.open("wb") as file:
        async for body in bodies:
            file.write(body.content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A part to fill beside the file; once it is whole it takes the file's place."""
    with telling(path):
        goal = path.resolve()  # a link stays a link
        if goal.is_dir():
            raise IsADirectoryError(None, "it is a directory")
        with made_beside(goal, ".part") as part:
            yield part
            if goal.exists():
                part.chmod(goal.stat().st_mode & 0o777)
            os.replace(part, goal)


@contextmanager
def made_beside(goal: Path, suffix: str) -> Iterator[Path]:
    """An empty file that nobody could have put there before; it is gone afterwards."""
    part = goal.with_name(f".noetl-export-{secrets.token_hex(8)}{suffix}")
    try:
        os.close(private_file(part, os.O_WRONLY | os.O_EXCL))
        yield part
    finally:
        discard(part)


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """What the system says about a file, as a sentence about the one that was asked for."""
    try:
        yield
    except (OSError, ValueError) as wrong:
        reason = getattr(wrong, "strerror", None) or str(wrong)
        raise UnwritableFile(
            f"cannot write '{path}': {reason.lower()}; "
            "check the path, its permissions and the room on the disk"
        ) from None


def discard(part: Path) -> None:
    """Remove what is left of a part, if it could be made at all."""
    with suppress(OSError, ValueError):
        part.unlink(missing_ok=True)


def write_durably(path: Path, content: bytes) -> None:
    """A file that is on the disk, under its name, when this returns; one that is there goes."""
    with replacing(path) as part, part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    sync(path.parent)


def sync(path: Path) -> None:
    """What a file holds, or which names a folder has, is on the disk when this returns."""
    with telling(path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
