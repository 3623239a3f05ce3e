"""From the log back to the state: a snapshot and its tail, or everything (EVT-5)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from noetl.control.evolve import evolve
from noetl.control.execution import Execution
from noetl.errors import ExecutionNotFound
from noetl.messages.codec import decode, encode, recorded_events, recorded_mappings
from noetl.messages.envelope import envelope
from noetl.messages.events import Event
from noetl.messages.names import FOLDED
from noetl.messages.reference import Reference
from noetl.playbook.plan import Plan
from noetl.ports.event_log import EventLog, LogRow

PAGE = 500
TURN = 65_536
"""Bytes of a log that are folded before others have their turn: some milliseconds."""

Load = Callable[[Reference], Awaitable[Any]]
"""Gets the value behind a reference; raises BodyLost."""


async def rows_of(log: EventLog, execution_id: str, after: int = 0) -> AsyncIterator[LogRow]:
    """Every decision after `after`, in order; a long log leaves others their turns."""
    size = 0
    while True:
        page = await log.read(execution_id, after=after, limit=PAGE)
        for row in page:
            yield row
            size += len(row.events)
            if size > TURN:
                size = 0
                await asyncio.sleep(0)
        if len(page) < PAGE:
            return
        after = page[-1].last


def enveloped(
    row: LogRow, execution_id: str, trace: str | None, after: int = 0
) -> Iterator[dict[str, Any]]:
    """The events of a row behind `after`, each in its envelope (EVT-1)."""
    for offset, event in enumerate(recorded_mappings(execution_id, row.first, row.events)):
        seq = row.first + offset
        if seq > after:
            yield envelope(event, execution_id=execution_id, seq=seq, at=row.at, trace_id=trace)


async def with_state(event: Event, load: Load | None) -> Event:
    """An event that holds a state as the fold takes it: what lies outside is loaded (RST-2)."""
    name = FOLDED.get(type(event))
    value = None if name is None else getattr(event, name)
    if name is None or not isinstance(value, Reference):
        return event
    assert load is not None, "whoever reads a restarted execution can load bodies"
    return msgspec.structs.replace(event, **{name: await load(value)})


async def replay(
    log: EventLog,
    execution_id: str,
    plan: Plan,
    load: Load | None = None,
    *,
    from_snapshot: bool = True,
    until: int | None = None,
) -> tuple[Execution, int]:
    """
    The state at the end of the log, and how many decisions were folded for it.

    With `until` the state after that event; then a snapshot is of no use.
    """
    kept = await log.snapshot(execution_id) if from_snapshot else None
    execution = thawed_or_new(b"" if kept is None else kept.body, execution_id)
    folded = 0
    async for row in rows_of(log, execution_id, execution.seq):
        if until is not None and row.first > until:
            break
        execution.now = row.at
        wanted = None if until is None else until - row.first + 1
        for event in recorded_events(execution_id, row.first, row.events)[:wanted]:
            if type(event) in FOLDED:
                event = await with_state(event, load)
            evolve(execution, event, plan)
        folded += 1
    if execution.seq == 0:
        raise ExecutionNotFound(f"no execution '{execution_id}' in this home")
    execution.bodies.clear()
    return execution, folded


async def first_event(log: EventLog, execution_id: str) -> Event:
    """The request that began an execution: it names the playbook."""
    rows = await log.read(execution_id, limit=1)
    if not rows:
        raise ExecutionNotFound(
            f"no execution '{execution_id}' in this home; `noetl list` shows those there are"
        )
    return recorded_events(execution_id, 1, rows[0].events)[0]


def thawed_or_new(body: bytes, execution_id: str) -> Execution:
    """A snapshot that cannot be read is no loss: the log has everything (EVT-5)."""
    if body:
        with suppress(msgspec.DecodeError, ValueError, TypeError, LookupError):
            return thawed(body)
    return Execution(execution_id=execution_id)


class Frozen(msgspec.Struct, kw_only=True):
    """A snapshot: the state, with equal ctx views written once."""

    state: Execution
    views: list[dict[str, object]]
    """The distinct `ctx` of runs; each run holds its number under one key."""
    form: int = 1
    """What the state counts; one that counts less is not read, for the log knows better."""


VIEW = "$view"
FORM = 2
"""Since the state counts errors that were passed and failures that were handled."""


def frozen(execution: Execution) -> bytes:
    """The state as bytes. Runs mostly share one ctx: it is written once, not per run."""
    views: dict[int, int] = {id(execution.ctx): 0}
    kept = [execution.ctx]
    runs = {}
    for key, run in execution.runs.items():
        number = views.setdefault(id(run.ctx), len(kept))
        if number == len(kept):
            kept.append(run.ctx)
        runs[key] = msgspec.structs.replace(run, ctx={VIEW: number})
    state = msgspec.structs.replace(execution, runs=runs, bodies={})
    return encode(Frozen(state=state, views=kept, form=FORM))


def thawed(body: bytes) -> Execution:
    """The state of a snapshot; ValueError where it was taken in another form."""
    snapshot: Frozen = decode(body, Frozen)
    if snapshot.form != FORM:
        raise ValueError(f"the snapshot has form {snapshot.form}, expected {FORM}")
    execution = snapshot.state
    for run in execution.runs.values():
        number = run.ctx[VIEW]
        run.ctx = snapshot.views[number] if number else execution.ctx
    return execution
