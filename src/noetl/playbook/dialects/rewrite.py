"""What migration tells about each change, and the form of its passes (DIA)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from noetl.playbook.dialects.tree import Mapping

if TYPE_CHECKING:
    from noetl.playbook.dialects.draft import Draft

Block = Literal["document", "step", "task", "rule"]


class Rewrite(msgspec.Struct, frozen=True):
    """One change. The field names are the JSON contract of `noetl migrate`."""

    code: str
    line: int
    new_line: int
    path: str
    old: str
    new: str
    message: str


class Pass(NamedTuple):
    """
    One pass: applied to every block of its kind, after all passes above it.

    It changes only what it knows, and leaves canonical text alone: that makes migration idempotent.
    """

    code: str
    block: Block
    apply: Callable[["Draft", Mapping], None]


REASONS: dict[str, str] = {
    "case-args": "Arguments belong to the task that takes them.",
    "case-empty": "An input without a value is left out.",
    "case-loop": "The options of a loop are in its spec, the names of an iteration under `iter`.",
    "case-next": "The router holds the arcs and their mode.",
    "case-path": "A playbook is found by its path.",
    "case-results": "A result that later steps read is kept in `ctx` below the step's name.",
    "case-retry": "When to run again is the policy of the task.",
    "case-routes": "Arcs say where a token goes; rules of the task say what an outcome means.",
    "case-sink": "A sink is an ordinary storage task.",
    "case-vars": "What outlives a step is in `ctx`.",
    "case-workbook": "The workbook has tasks by name; a sink is a storage task.",
    "comments": "Comments stay.",
    "eval-backoff": "`none` keeps the delay constant.",
    "eval-defaults": "The router owns the mode of its arcs.",
    "eval-names": "The name has changed.",
    "eval-next": "The router holds the arcs and their mode.",
    "eval-no-match": "Where no rule matches, a policy goes on; the eval dialect failed on an "
    "error.",
    "eval-pipe": "The list of a step's tasks is its pipeline.",
    "eval-rule-shape": "A rule is a guard and its directive.",
    "eval-rules": "What an outcome means is the policy of the task.",
    "eval-status": "The status of an outcome is ok or error.",
    "eval-step-when": "Admission decides which tokens may fire a step; a refused token waits.",
    "eval-vars": "`vars` of one step run is `iter` now; what outlives an iteration or is read by "
    "`next` is a key of `ctx`, and what iterations share is reduced by the loop.",
    "up-auth": "A task names the credential that it needs; templates never see secrets.",
    "up-empty-step": "A step has a tool or a router.",
    "up-event": "A run of a step ends in one of its events.",
    "up-executor": "Every runtime takes every playbook.",
    "up-input": "Inputs are written next to `kind`, under the names that the kind gives them.",
    "up-loop": "A loop has a collection and an iterator.",
    "up-name": "Names are read with their scope.",
    "up-no-match": "Where no arc matches, the branch ends.",
    "up-output": "A task's answer is `outcome`.",
    "up-python": "Code gets its args as names, and gives `result` or what `main` returns.",
    "up-result": "A step keeps its result in `ctx` where others read it; a task, in `iter`.",
    "up-retry": "A rule says what is retried.",
    "up-rule-shape": "A rule is a guard and its directive.",
    "up-set": "A rule of the task writes, before its directive takes effect.",
    "up-tool": "A pipeline is a list of labelled tasks.",
    "up-vars": "Inputs of an execution are its workload.",
    "up-workbook": "The workbook has tasks by name.",
}
"""By code: why. A sentence for people, the same for every place."""
