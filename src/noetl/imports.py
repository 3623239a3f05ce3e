"""
Modules that are read when they are first needed, since most runs of the program never need them.

Libraries import more than a command uses: asyncio brings TLS, click brings a disassembler, and
`import jinja2.nodes` first runs the package's own module, which imports all of it. That takes
longer than a small run does. While the program imports its commands, the modules in `LATE` are
found and not run: such a module has no names until somebody asks for one. Then it is run, as if it
were imported now (decision 0070). Who imported it before us is not disturbed.
"""

import sys
from _thread import RLock
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import FunctionType, ModuleType
from typing import Any

from noetl.late import late_patterns
from noetl.module_files import find_source

LATE = frozenset(
    (
        *("ssl", "asyncio.sslproto", "asyncio.staggered", "gettext", "hashlib", "ipaddress"),
        *("json", "locale"),
        *("inspect", "ast", "tokenize", "linecache", "textwrap", "jinja2", "yaml"),
        *("msgspec.inspect", "msgspec.msgpack", "msgspec.structs", "msgspec.toml", "msgspec.yaml"),
    )
)
"""Modules that a library imports whole (`import ssl`) and a run may never use."""
WITH_LATE_PATTERNS = frozenset(
    ("click", "jinja2", "logging", "platform", "string", "urllib", "yaml")
)
"""Packages whose patterns only their own functions use."""

IS_COROUTINE = 0x80
"""In the flags of a function's code, since Python 3.5."""

READING = RLock()
_being_read: set[str] = set()


class LateModule(ModuleType):
    """A module that was found and not run yet; of a package, parts may be imported already."""

    def __getattr__(self, name: str) -> object:
        if name == "__path__":  # the import system asks whether it is a package
            raise AttributeError(name)
        with READING:
            if type(self) is LateModule:
                if self.__name__ in _being_read:  # its own code asks whether it has a name already
                    raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} yet")
                if is_part(self, name):
                    return import_module(f"{self.__name__}.{name}")
                run(self)
        return getattr(self, name)


def is_part(package: ModuleType, name: str) -> bool:
    path, whole = package.__dict__.get("__path__"), f"{package.__name__}.{name}"
    if path is None:
        return False
    return (find_source(whole, path) or PathFinder.find_spec(whole, path)) is not None


def run(module: ModuleType) -> None:
    """What the import of the module had left out."""
    assert module.__spec__ is not None
    assert module.__spec__.loader is not None
    _being_read.add(module.__name__)
    try:
        module.__spec__.loader.exec_module(module)
    finally:
        _being_read.discard(module.__name__)
    module.__class__ = ModuleType


def cleandoc(text: str) -> str:
    """`inspect.cleandoc`, which click asks about the help of each option."""
    first, *others = text.expandtabs().split("\n")
    margins = [len(line) - len(line.lstrip()) for line in others if line.strip()]
    margin = min(margins, default=0)
    lines = [first.lstrip(), *(line[margin:] for line in others)]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return "\n".join(lines)


def iscoroutinefunction(thing: Any) -> bool:
    """`inspect.iscoroutinefunction`, which asyncio asks about what is called on a signal."""
    if type(thing) is FunctionType:
        return bool(thing.__code__.co_flags & IS_COROUTINE)
    module = sys.modules["inspect"]
    module.unwrap  # noqa: B018 - now it has its own functions
    return bool(module.iscoroutinefunction(thing))


def gettext(message: str) -> str:
    """`gettext.gettext` where no translations are installed: there are none of click's words."""
    return message


def ngettext(one: str, many: str, count: int) -> str:
    return one if count == 1 else many


STAND_INS: dict[str, dict[str, object]] = {
    "gettext": {"gettext": gettext, "ngettext": ngettext},
    "inspect": {"cleandoc": cleandoc, "iscoroutinefunction": iscoroutinefunction},
}
"""What is asked of a module in every run, until it is read: it is too little to read it for."""


class LateLoader:
    """Makes the module and leaves the rest to the first who asks it for a name."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self.loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.loader
        module.__dict__.update(STAND_INS.get(module.__name__, {}))
        module.__class__ = LateModule


class LateFinder:
    """Finds modules in few steps, and those in `LATE` without running them."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        found = find_source(name, path)
        if name not in LATE:
            return found
        spec = found or PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LateLoader(spec.loader)  # type: ignore[assignment]
        return spec


@contextmanager
def sparing() -> Iterator[None]:
    """What is imported in here brings of its libraries only what it needs."""
    # Whoever has put a finder of his own before Python's is asked first.
    sys.meta_path.insert(sys.meta_path.index(PathFinder), LateFinder)
    try:
        with late_patterns(WITH_LATE_PATTERNS):
            yield
    finally:
        sys.meta_path.remove(LateFinder)


@contextmanager
def absent(name: str) -> Iterator[None]:
    """Let an import in here do without a module that it can do without."""
    unknown = name not in sys.modules
    if unknown:
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if unknown:
            del sys.modules[name]


def import_command(module: str) -> ModuleType:
    """The module of a command, with what nearly every command needs."""
    with sparing():
        # From there it takes names that `typing` has too, unless Python is older than ours.
        with absent("typing_extensions"):
            import_module("msgspec")
        return import_module(module)
