"""Why an execution waits or failed: the facts, as the API answers them; words are the reader's."""

from typing import TypeVar

import msgspec
from msgspec.structs import replace

from noetl.control.execution import Execution
from noetl.errors import NoetlError
from noetl.messages.events import TaskDone
from noetl.messages.places import outer_index
from noetl.playbook.load import load_kept
from noetl.playbook.model import Playbook
from noetl.playbook.plan import Plan
from noetl.ports.event_log import ExecutionRow, Printed
from noetl.ports.large import DRAFTS
from noetl.ports.storage import Storage
from noetl.server.causes import (
    Cause,
    ToleratedLoop,
    Unmatched,
    causes_of,
    handled_in,
    tolerated_in,
    unmatched_in,
)
from noetl.server.failed_tasks import PRINTED, FailedTask, PassedError, PlaybookText, passed_of
from noetl.server.former import former_lines, relined
from noetl.server.holders import is_left
from noetl.server.trail import Trail, again_of, trail_of
from noetl.server.views.standing import lasted
from noetl.server.waiting import WaitReason, waits_in
from noetl.tools.plugins import KnownKinds

T = TypeVar("T", bound=FailedTask)

MOST_TOLD = 10
"""Failures whose printed lines are looked for."""


class Stopped(msgspec.Struct, frozen=True):
    """The order that stopped it: a request, `fail_fast` or its time limit."""

    by: str
    reason: str


class AdmissionRefusal(msgspec.Struct, frozen=True):
    """The rule of an admission that refused a token."""

    token_id: str
    rule: int
    """Counted from 0."""
    line: int
    guard: str


class Dropped(msgspec.Struct, frozen=True):
    """A token that led to nothing."""

    step: str
    reason: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """All that there is to say about how an execution stands."""

    execution_id: str
    path: str
    status: str
    interrupted: bool
    duration_ms: int
    failures: int
    """How many there are; `causes` tells of the first."""
    causes: list[Cause]
    failures_handled: int = 0
    """How many an arc took; `handled` tells of the first."""
    handled: list[Cause] = []
    errors_passed: int = 0
    """After how many errors it went on; `went_on` and `tolerated` tell of the first."""
    went_on: list[PassedError] = []
    tolerated: list[ToleratedLoop] = []
    waits: list[WaitReason]
    stopped: Stopped | None = None
    refused: list[AdmissionRefusal] = []
    dropped: list[Dropped] = []
    unmatched: list[Unmatched] = []
    """Of an execution that has ended: where no arc matched, and what never ran for that."""


async def explanation_of(
    storage: Storage, row: ExecutionRow, execution: Execution, plan: Plan
) -> Explanation:
    holder = await storage.owners.holder(row.execution_id)
    kept = await storage.playbooks.text(row.digest)
    if kept is None:
        raise NoetlError(f"the playbook of '{row.execution_id}' is not in this home any more")
    playbook = await DRAFTS.read(len(kept[0]), load_kept, kept[0], KnownKinds())
    lines = await former_lines(storage, row, *kept)
    playbook = relined(playbook, lines) if lines else playbook
    document = PlaybookText(playbook, kept[0], lines)
    trail = await trail_of(storage.log, row.execution_id)
    order = trail.cancelled
    facts = Facts(storage.printed, row.execution_id)
    waits = await waits_in(storage, execution, plan, holder)
    interrupted = is_left(row) and holder is None
    return Explanation(
        execution_id=row.execution_id,
        path=row.path,
        status=row.status,
        interrupted=interrupted,
        duration_ms=lasted(row, interrupted=interrupted),
        failures=execution.failed,
        causes=await facts.told(causes_of(execution, trail, document)),
        failures_handled=execution.failures_handled,
        handled=await facts.told(handled_in(trail, document)),
        errors_passed=execution.errors_passed,
        went_on=[
            await facts.printed(passed_of(done, again_for(trail, done), document), done.step)
            for done in trail.passed[:MOST_TOLD]
        ],
        tolerated=tolerated_in(trail, playbook),
        waits=waits,
        stopped=None if order is None else Stopped(order.by, order.reason),
        refused=[found for wait in waits for found in refusals(wait, trail, playbook)],
        dropped=[Dropped(token.step, token.reason) for token in trail.dropped],
        unmatched=[] if row.finished_at is None else unmatched_in(trail, playbook),
    )


def again_for(trail: Trail, done: TaskDone) -> str:
    index = outer_index(done.task_run_id)
    return again_of(trail, done, [] if index is None else [index])


class Facts:
    """What tasks printed, beside what the log says of them."""

    def __init__(self, printed: Printed, execution_id: str) -> None:
        self._printed = printed
        self._execution_id = execution_id

    async def told(self, causes: list[Cause]) -> list[Cause]:
        """The causes, the first with what their tasks printed."""
        return [
            replace(cause, chain=[await self.printed(link, cause.step) for link in cause.chain])
            for cause in causes[:MOST_TOLD]
        ] + causes[MOST_TOLD:]

    async def printed(self, link: T, step: str) -> T:
        lines = [
            line.text
            for line in await self._printed.read(self._execution_id, step=step)
            if line.task_run_id == link.task_run_id and line.attempt == link.attempt
        ]
        return replace(link, printed=lines[-PRINTED:]) if lines else link


def refusals(wait: WaitReason, trail: Trail, playbook: Playbook) -> list[AdmissionRefusal]:
    """Which rule refused the token that waits."""
    verdict = trail.verdicts.get(wait.token_id or "")
    if verdict is None or verdict.rule is None:
        return []
    rules = [
        step.admission.rules[verdict.rule]
        for step in playbook.steps
        if step.name == wait.step and step.admission is not None
    ]
    return [
        AdmissionRefusal(verdict.token_id, verdict.rule, rule.place.line, guard_words(rule.when))
        for rule in rules
    ]


def guard_words(when: object) -> str:
    return "else" if when is None else f"when {when}"
