"""
Patterns that are compiled when they are first used, since most runs of the program never use them.

To compile a pattern takes longer than to use it. PyYAML has twenty, one of them for all of Unicode,
and its C parser uses none. A late pattern answers as the compiled one does, also to `isinstance`
and to the functions of `re`.
"""

import re
import sys
from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import Any, cast

USUAL = ("match", "fullmatch", "search", "sub", "split", "findall", "finditer")
compile_now = re.compile


class LatePattern:
    """Stands for a pattern; from the first use on it has the methods of the compiled one."""

    def __init__(self, text: str, flags: int) -> None:
        self._text = text
        self._flags = flags

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """`re.sub(pattern, …)` asks whether it is given text or a pattern."""
        return re.Pattern

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
def late_patterns(packages: Container[str]) -> Iterator[None]:
    """Modules of these packages that are imported in here get late patterns, and nobody else."""

    def compiled(text: Any, flags: int = 0) -> Any:
        asks = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0]
        known = asks in packages and isinstance(text, str | bytes)
        return late(text, flags) if known else compile_now(text, flags)

    re.compile = compiled  # type: ignore[assignment]
    try:
        yield
    finally:
        re.compile = compile_now
