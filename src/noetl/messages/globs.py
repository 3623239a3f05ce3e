"""
Globs: which names does `shop/*` mean?

Who may look asks for any number of different ones. Python's own function remembers 32,768 of them,
which took half a gigabyte.
"""

import re
from collections.abc import Callable
from fnmatch import translate
from functools import lru_cache
from typing import Any

MOST_KEPT = 256


def matches(name: str, glob: str) -> bool:
    """Whether a name is one of those that a glob means; case matters."""
    return _matcher(glob)(name) is not None


@lru_cache(maxsize=MOST_KEPT)
def _matcher(glob: str) -> Callable[[str], Any]:
    return re.compile(translate(glob)).match
