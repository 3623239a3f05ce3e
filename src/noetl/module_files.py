"""
Modules found and read in few steps.

Nearly every module is one file of source with its compiled form beside it, written by whoever
installed it. Python finds it among all that could have its name: it looks at the folder again for
each import, tries the suffixes one after the other, and asks the file system a dozen questions per
module. A run of the program imports four hundred. Here a folder is listed once, and where the
compiled form is fresh it is read at once. Whatever is not as usual is left to Python, which knows
all cases (decision 0082).
"""

import marshal
import os
import sys
from _frozen_importlib_external import MAGIC_NUMBER
from collections.abc import Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import CodeType

HEAD = 16
"""Bytes before the code: the number of the format, flags, time and size of the source."""
WORD = 0xFFFF_FFFF
OTHER_SUFFIXES = (*EXTENSION_SUFFIXES, ".pyc")
"""Of what a name can be beside a package and source."""
AS_USUAL = sys.flags.optimize == 0 and sys.pycache_prefix is None and os.sep == "/"
"""Whether compiled modules are where Python keeps them unless it is told otherwise."""


class FreshLoader(SourceFileLoader):
    """Reads the compiled form of a module if it is fresh."""

    def get_code(self, fullname: str) -> CodeType | None:
        return fresh_code(self.path) or super().get_code(fullname)


def fresh_code(path: str) -> CodeType | None:
    """The code of a module, as Python would take it; None: it has to look more closely."""
    try:
        source = os.stat(path)
        compiled = content(compiled_path(path))
    except OSError:
        return None
    marks = (int(source.st_mtime) & WORD) << 32 | (source.st_size & WORD) << 64  # and no flags
    if compiled[:HEAD] != MAGIC_NUMBER + marks.to_bytes(12, "little"):
        return None
    code: CodeType = marshal.loads(memoryview(compiled)[HEAD:])
    return code if code.co_filename == path else None  # else it was compiled elsewhere


def content(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, os.fstat(file).st_size)
    finally:
        os.close(file)


def compiled_path(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/__pycache__/{name.removesuffix('py')}{sys.implementation.cache_tag}.pyc"


@cache
def names_in(folder: str) -> frozenset[str] | None:
    """What is in a folder; nothing where Python finds nothing, None where others look for it."""
    finder = sys.path_importer_cache.get(folder, FileFinder)
    if finder is None:
        return frozenset()
    if not folder.startswith("/") or not (finder is FileFinder or type(finder) is FileFinder):
        return None
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return None


@cache
def others_in(folder: str) -> frozenset[str]:
    """Names in a folder that stand for compiled libraries, or code without its source."""
    names = names_in(folder) or ()
    return frozenset(name.partition(".")[0] for name in names if name.endswith(OTHER_SUFFIXES))


def find_source(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """A module or a package whose source is where one expects it; None: Python has to look."""
    if not AS_USUAL:
        return None
    last = name.rpartition(".")[2]
    for folder in sys.path if path is None else path:
        names = names_in(folder)
        if names is None or last in others_in(folder):
            return None
        if last in names:
            return package_in(name, f"{folder}/{last}")
        if f"{last}.py" in names:
            return spec_of(name, f"{folder}/{last}.py")
    return None


def package_in(name: str, folder: str) -> ModuleSpec | None:
    if "__init__.py" not in (names_in(folder) or ()) or "__init__" in others_in(folder):
        return None
    found = spec_of(name, f"{folder}/__init__.py")
    found.submodule_search_locations = [folder]
    return found


def spec_of(name: str, file: str) -> ModuleSpec:
    found = ModuleSpec(name, FreshLoader(name, file), origin=file)
    found.has_location = True
    found.cached = compiled_path(file)
    return found
