"""
Jinja2 part by part: most templates need its nodes and its undefined, and no more.

`import jinja2.nodes` runs the package's own module first, which imports all of it: lexer, parser,
compiler, loaders, caches of files. That takes longer than a small run does. Here the package stands
without its names until somebody asks for one; then its own module is run, as if it were imported
now. Who imported it before us is not disturbed.
"""

import sys
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import ModuleType

READING = RLock()


class PackageInParts(ModuleType):
    """A package of which only parts are imported so far."""

    def __getattr__(self, name: str) -> object:
        with READING:
            if type(self) is PackageInParts:
                if "reading" in self.__dict__:  # it looks whether it has a part already
                    raise AttributeError(name)
                self.__dict__["reading"] = True
                assert self.__spec__ is not None
                assert self.__spec__.loader is not None
                self.__spec__.loader.exec_module(self)
                self.__class__ = ModuleType
        return getattr(self, name)


def import_in_parts(package: str) -> None:
    """Let the parts of a package be imported without it."""
    spec = find_spec(package) if package not in sys.modules else None
    if spec is not None:
        module = sys.modules[package] = module_from_spec(spec)
        module.__class__ = PackageInParts
