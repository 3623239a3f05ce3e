"""What migration tells about each change, and the form of the tables of rewrites (DIA)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from noetl.playbook.dialects.tree import Mapping

if TYPE_CHECKING:
    from noetl.playbook.dialects.draft import Draft

Block = Literal["document", "step", "task", "rule", "arc"]
Apply = Callable[["Draft", Mapping], None]


class Rewrite(msgspec.Struct, frozen=True):
    """One change. The field names are the JSON contract of `noetl migrate`."""

    code: str
    line: int
    new_line: int
    path: str
    old: str
    new: str
    message: str


class Rewriting(NamedTuple):
    """
    One row of a dialect's table.

    The rows are applied in order, each to every block of its kind, so that a row meets what all
    rows above it have left. A row changes only what it knows, and leaves canonical text alone:
    that makes migration idempotent.
    """

    code: str
    block: Block
    apply: Apply
    message: str
    """Why: a sentence for people, the same for every place."""
