"""
What is read when it is first needed, since most runs of the program never need it.

Patterns: to compile one takes longer than to use it. PyYAML has twenty, one of them for all of
Unicode, and its C parser uses none.

Packages: `import jinja2.nodes` runs the package's own module first, which imports all of it, with
lexer, parser, compiler and loaders. That takes longer than a small run does. Here it stands
without its names until somebody asks for one; then its own module is run, as if it were imported
now. Who imported it before us is not disturbed.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import ModuleType
from typing import Any, cast

USUAL = ("match", "fullmatch", "search", "sub", "split", "findall", "finditer")
READING = RLock()
compile_now = re.compile


class LatePattern:
    """Stands for a pattern; from the first use on it has the methods of the compiled one."""

    def __init__(self, text: str, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        compiled = compile_now(self._text, self._flags)
        for method in USUAL:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def late(text: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern that few runs of the program ever need."""
    return cast("re.Pattern[str]", LatePattern(text, flags))


@contextmanager
def late_patterns(package: str) -> Iterator[None]:
    """Modules of a package that are imported in here get late patterns, and nobody else does."""

    def compiled(text: Any, flags: int = 0) -> Any:
        asks = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0]
        known = asks == package and isinstance(text, str)
        return late(text, flags) if known else compile_now(text, flags)

    re.compile = compiled  # type: ignore[assignment]
    try:
        yield
    finally:
        re.compile = compile_now


class PackageInParts(ModuleType):
    """A package of which only parts are imported so far."""

    def __getattr__(self, name: str) -> object:
        with READING:
            if type(self) is PackageInParts:
                if "reading" in self.__dict__:  # it looks whether it has a part already
                    raise AttributeError(name)
                if find_spec(part := f"{self.__name__}.{name}") is not None:
                    return import_module(part)
                self.__dict__["reading"] = True
                assert self.__spec__ is not None
                assert self.__spec__.loader is not None
                self.__spec__.loader.exec_module(self)
                self.__class__ = ModuleType  # type: ignore[assignment]
        return getattr(self, name)


def import_in_parts(package: str) -> None:
    """Let the parts of a package be imported without it."""
    spec = find_spec(package) if package not in sys.modules else None
    if spec is not None:
        module = sys.modules[package] = module_from_spec(spec)
        module.__class__ = PackageInParts


def spare() -> None:
    """Before a command is imported: let it have of these libraries only what it needs."""
    import_in_parts("jinja2")
    with late_patterns("yaml"):
        import_module("yaml")
