"""Where a path of a playbook leads, below the folder that it may not leave; how it is written."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from noetl.tools.refusal import Refusal


def inside(
    folder: str | None, path: str, root: str | None = None, private: Sequence[str] = ()
) -> Path:
    """
    The file that `path` means; links are followed before it is compared.

    It stays below the playbook's folder, or, where the worker names a `root` (setting `files`),
    below that one and may then be absolute. What is `private` it never is.
    """
    if folder is None and not (root is not None and path.startswith("/")):
        raise Refusal(
            "input",
            f"path '{path}' has no folder to start from: a playbook of the catalog finds its files "
            "below the worker's setting 'files' (NOETL_FILES); set it, or run the playbook's file",
        )
    try:
        bound = Path(root or folder or "").resolve()
        target = (Path(folder or "/").resolve() / path).resolve()
    except (OSError, ValueError, RuntimeError) as fault:  # a loop of links, a null byte
        raise Refusal("input", f"path '{path}' cannot be read: {fault}") from None
    refuse_private(target, path, private)
    if target.is_relative_to(bound):
        return target
    if root is None:
        raise Refusal("input", f"path '{path}' leaves the playbook's folder, which is not allowed")
    says = f"path '{path}' is not below {bound}, the worker's folder for files"
    raise Refusal("input", f"{says}; put the file there, or change its setting 'files'")


def refuse_private(target: Path, path: str, private: Sequence[str]) -> None:
    """Neither NoETL's own files, nor what the kernel shows of processes as files."""
    if any(target.is_relative_to(own) for own in (*private, "/proc")):
        says = f"path '{path}' leads to files of NoETL itself, or of a process"
        raise Refusal("input", f"{says}; no playbook reaches them")


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which gets its name when it is whole; raises Refusal."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    except OSError as fault:
        if fault.filename is None and fault.errno is None:
            raise  # a connection's, not the disk's
        raise Refusal("input", f"cannot write {path}: {fault.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
