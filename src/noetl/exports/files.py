"""A file that appears whole or not at all, whatever happens while it is written."""

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from noetl.errors import UnwritableFile
from noetl.exports.batches import Body

Filled = Callable[[Path], None]
PART = ".part"


async def write_file(path: Path, bodies: AsyncIterator[Body]) -> None:
    """Write bodies one after the other; a pipe or a device takes them as they come."""
    if _is_special(path):
        await _pour(path, bodies)
        return
    path = path.resolve()  # a link stays a link
    part = path.with_name(f"{path.name}.{os.getpid()}{PART}")
    try:
        await _pour(part, bodies)
        move(part, path)
    finally:
        discard(part)


async def _pour(path: Path, bodies: AsyncIterator[Body]) -> None:
    try:
        with path.open("wb") as file:
            async for body in bodies:
                file.write(body.content)
    except (OSError, ValueError) as wrong:
        raise unwritable(path, wrong) from None


def move(part: Path, path: Path) -> None:
    """Put the finished part where the file is expected."""
    try:
        os.replace(part, path)
    except OSError as wrong:
        raise unwritable(path, wrong) from None


def discard(part: Path) -> None:
    """Remove what is left of a part."""
    try:
        part.unlink(missing_ok=True)
    except (OSError, ValueError):
        return  # it could not be made either


def unwritable(path: Path, wrong: Exception) -> UnwritableFile:
    """The sentence about a file that cannot be written."""
    reason = getattr(wrong, "strerror", None) or str(wrong)
    shown = str(path).split(f".{os.getpid()}{PART}")[0]
    return UnwritableFile(
        f"cannot write '{shown}': {reason.lower()}; "
        "check the path, its permissions and the room on the disk"
    )


def _is_special(path: Path) -> bool:
    try:
        return path.exists() and not path.is_file() and not path.is_dir()
    except (OSError, ValueError):
        return False  # opening it says why
