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


REASONS: dict[str, str] = {
    "case-loop": "An iteration has its names below `iter`.",
    "case-results": "A result that later steps read is kept in `ctx` below the step's name.",
    "case-routes": "Arcs say where a token goes; rules of the task say what an outcome means.",
    "case-vars": "What outlives a step is in `ctx`.",
    "case-workbook": "The workbook has tasks by name.",
    "eval-names": "The name has changed.",
    "eval-status": "The status of an outcome is ok or error.",
    "eval-vars": "`vars` of one step run is `iter` now; what outlives an iteration or is read by "
    "`next` is a key of `ctx`, and what iterations share is reduced by the loop.",
    "up-event": "A run of a step ends in one of its events.",
    "up-name": "Names are read with their scope.",
    "up-output": "A task's answer is `outcome`.",
    "up-rule-shape": "A rule is a guard and its directive.",
    "up-result": "A step keeps its result in `ctx` where others read it; a task, in `iter`.",
    "up-vars": "Inputs of an execution are its workload.",
}
"""By code: why a name is spelled anew; several may change in one text."""
