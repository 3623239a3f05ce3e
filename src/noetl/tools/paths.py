"""Where a path of a playbook leads, below the folder that it may not leave; how it is written."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from noetl.tools.process.inside.program_files import program_folders
from noetl.tools.refusal import Refusal

KINDS = {"file": stat.S_ISREG, "folder": stat.S_ISDIR}


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
        says = f"path '{path}' leaves the playbook's folder {bound}, which is not allowed"
        raise Refusal("input", f"{says}; name a file below it")
    says = f"path '{path}' is not below {bound}, the worker's folder for files"
    raise Refusal("input", f"{says}; put the file there, or change its setting 'files'")


def refuse_private(target: Path, path: str, private: Sequence[str]) -> None:
    """Neither NoETL's own files, nor what the kernel shows of processes as files."""
    if any(target.is_relative_to(own) for own in (*private, "/proc")):
        says = f"path '{path}' leads to files of NoETL itself, or of a process"
        raise Refusal("input", f"{says}; no playbook reaches them")


def refuse_program(path: Path) -> None:
    """What is written there would run in the next process of NoETL (decision 0090)."""
    if any(path.is_relative_to(own) for own in program_folders()):
        says = f"path '{path}' leads to files of the program itself"
        raise Refusal("input", f"{says}; no playbook writes there")


@contextmanager
def held(path: Path, kind: Literal["file", "folder"]) -> Iterator[str]:
    """
    Another name of what lies at a path without links, which goes on to mean the same.

    Code of a playbook can put a link into the path after `inside` has looked at it: what is there
    is held first, then asked where it lies. To hold it reads nothing, waits for nobody, and lets
    go of no lock of ours. Raises Refusal, OSError.
    """
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        name = f"/proc/self/fd/{descriptor}"
        if os.readlink(name) != str(path):
            raise Refusal("input", f"path '{path}' was exchanged while it was opened")
        if not KINDS[kind](os.fstat(descriptor).st_mode):
            raise Refusal("input", f"path '{path}' cannot be read: it is not a {kind}")
        yield name
    finally:
        os.close(descriptor)


def open_file(path: Path) -> IO[bytes]:
    """A file to read, by the path that `inside` gave; raises Refusal, OSError."""
    with held(path, "file") as name:
        return open(name, "rb")


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which gets its name when it is whole; raises Refusal."""
    refuse_program(path)
    try:
        with held(path.parent, "folder") as folder:
            part = Path(folder, f".{path.name}.{os.urandom(4).hex()}.part")
            try:
                with part.open("wb") as file:
                    yield file
                part.replace(Path(folder, path.name))
            finally:
                part.unlink(missing_ok=True)
    except OSError as fault:
        if fault.filename is None and fault.errno is None:
            raise  # a connection's, not the disk's
        raise Refusal("input", f"cannot write {path}: {fault.strerror}") from None
