"""How an execution stands, as the command line prints it and the API answers it."""

import time
from typing import Any

import msgspec

from noetl.control.execution import Execution
from noetl.expression.failure import shortened
from noetl.messages.codec import recorded_events
from noetl.messages.envelope import timestamp
from noetl.messages.events import AdmitEvaluated, ExecutionRequested, TokenDropped
from noetl.playbook.plan import Plan
from noetl.ports.event_log import ExecutionRow, PrintedLine
from noetl.ports.storage import Storage
from noetl.server.holders import is_left
from noetl.server.replay import rows_of
from noetl.server.report import steps_of
from noetl.server.waiting import WaitReason, waits_in


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """An execution in a list."""

    execution_id: str
    path: str
    version: str | None
    status: str
    interrupted: bool
    """Not ended, and nobody is left who decides for it."""
    started_at: str
    updated_at: str
    finished_at: str | None
    duration_ms: int
    parent_execution_id: str | None
    error: str | None
    note: str | None = None
    """Of one that completed: what went wrong on the way and did not fail it."""
    origin_execution_id: str | None = None
    """The execution that it was restarted from (RST)."""
    seq: int = 0
    """Of the last event of its log."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """An execution by itself: what runs, what waits, and for what."""

    execution_id: str
    path: str
    version: str | None
    status: str
    interrupted: bool
    owner: str | None
    """The process or server that decides for it."""
    seq: int
    started_at: str
    updated_at: str
    finished_at: str | None
    duration_ms: int
    error: dict[str, Any] | None
    steps: list[dict[str, Any]]
    waits: list[WaitReason]
    refused: str | None = None
    """Why it ended and no step ran."""
    errors_passed: int = 0
    """Errors after which it went on: a policy, or a loop, let them pass (TASK-2)."""
    failures_handled: int = 0
    """Failures of steps that an arc took (NEXT-3)."""
    origin_execution_id: str | None = None
    """The execution that it was restarted from (RST)."""
    trigger: str | None = None
    """The path of the trigger that started it."""
    parent_execution_id: str | None = None
    """The execution whose task started it (TOOL-1)."""
    occurrence: str | None = None
    """What that start was for: a planned time, a delivery, a message, an execution (START-2)."""


class TaskLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that a task printed."""

    timestamp: str
    step: str
    task_run_id: str
    attempt: int
    stream: str
    text: str


def listed_of(row: ExecutionRow, *, interrupted: bool) -> Listed:
    error = None if row.error is None else shortened(row.error)  # rows of older releases have all
    return Listed(
        execution_id=row.execution_id,
        path=row.path,
        version=row.version,
        status=row.status,
        interrupted=interrupted,
        started_at=timestamp(row.started_at),
        updated_at=timestamp(row.updated_at),
        finished_at=None if row.finished_at is None else timestamp(row.finished_at),
        duration_ms=lasted(row, interrupted=interrupted),
        parent_execution_id=row.parent_execution_id,
        error=None if row.status == "completed" else error,
        note=error if row.status == "completed" else None,
        origin_execution_id=row.origin_execution_id,
        seq=row.seq,
    )


async def standing_of(
    storage: Storage, row: ExecutionRow, execution: Execution, plan: Plan
) -> Standing:
    holder = await storage.owners.holder(row.execution_id)
    interrupted = is_left(row) and holder is None
    trigger, occurrence = await started_by(storage, row.execution_id)
    return Standing(
        execution_id=row.execution_id,
        path=row.path,
        version=row.version,
        status=execution.status,
        interrupted=interrupted,
        owner=holder,
        seq=execution.seq,
        started_at=timestamp(row.started_at),
        updated_at=timestamp(row.updated_at),
        finished_at=None if row.finished_at is None else timestamp(row.finished_at),
        duration_ms=lasted(row, interrupted=interrupted),
        error=execution.error,
        steps=steps_of(execution),
        waits=await waits_in(storage, execution, plan, holder),
        refused=await refusal_of(storage, execution),
        errors_passed=execution.errors_passed,
        failures_handled=execution.failures_handled,
        origin_execution_id=execution.origin_execution_id,
        trigger=trigger,
        occurrence=occurrence,
        parent_execution_id=row.parent_execution_id,
    )


def lasted(row: ExecutionRow, *, interrupted: bool) -> int:
    """How long it took, or runs by now; one that nobody runs, to where it stopped (ms)."""
    until = row.updated_at if interrupted else int(time.time() * 1000)
    return max(0, (row.finished_at or until) - row.started_at)


async def started_by(storage: Storage, execution_id: str) -> tuple[str | None, str | None]:
    """The trigger that started it and what for, from the key of the start (START-2)."""
    for row in await storage.log.read(execution_id, after=0, limit=1):
        first = recorded_events(execution_id, row.first, row.events)[0]
        if isinstance(first, ExecutionRequested) and first.trigger is not None:
            path, _, occurrence = first.trigger.partition("/")[2].rpartition("/")
            return path, occurrence
    return None, None


async def refusal_of(storage: Storage, execution: Execution) -> str | None:
    """What kept the entry token from running its step; a log without a run is short (ADM-3)."""
    if not execution.finished or execution.step_runs or execution.error is not None:
        return None
    verdict, dropped = None, None
    async for row in rows_of(storage.log, execution.execution_id):
        for event in recorded_events(execution.execution_id, row.first, row.events):
            if isinstance(event, AdmitEvaluated):
                verdict = event
            elif isinstance(event, TokenDropped):
                dropped = event
    if dropped is None:
        return None
    if verdict is None or verdict.allow:
        return f"no step ran: the token at '{dropped.step}' was dropped ({dropped.reason})"
    rule = "" if verdict.rule is None else f" (rule {verdict.rule + 1})"
    return f"no step ran: the admission of '{verdict.step}'{rule} refused the entry token"


def line_of(line: PrintedLine) -> TaskLine:
    return TaskLine(
        timestamp=timestamp(line.at),
        step=line.step,
        task_run_id=line.task_run_id,
        attempt=line.attempt,
        stream=line.stream,
        text=line.text,
    )
