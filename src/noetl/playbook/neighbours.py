"""What a document refers to beside itself, as far as whoever loads it can find that."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from noetl.playbook.declared import DeclaredInputs


class Neighbours(msgspec.Struct, frozen=True, kw_only=True):
    """Files and playbooks; each answers None where it knows of none."""

    file: Callable[[str], str | None] = lambda _: None
    """The text of a file that a path of the document leads to."""
    playbook: Callable[[str], "DeclaredInputs | None"] = lambda _: None
    """The inputs of a playbook that runs by this path."""
    paths: Callable[[], Collection[str]] = tuple
    """Paths of the catalog, to find the one that was meant."""


ALONE = Neighbours()
