"""Logs for the tests of exports, written by hand: short, with times that are easy to check."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.memory.storage import MemoryStorage
from noetl.api.questions import PlaneQuestions
from noetl.messages.envelope import envelope
from noetl.node.control_plane import ControlPlane
from noetl.ports.event_log import Decision, ExecutionRow
from noetl.ports.result_store import ResultStore
from noetl.settings import Settings

ID = "06h3k9v2q8m4x0c7w1"
T = TypeVar("T")
Event = dict[str, Any]
Told = tuple[int, Event]
RUN: Event = {"step": "load", "step_run_id": "4.0"}


def event(name: str, **fields: Any) -> Event:
    return {"name": name, **fields}


def done(task: str, started: int, took: int, **fields: Any) -> Event:
    """A `task.done` of the run `4.0`; `error` is the kind of an error."""
    kind = fields.pop("error", None)
    outcome: Event = {"status": "ok", "result": None, "error": None}
    if kind is not None:
        error = {"kind": kind, "message": f"a fault of {kind}", "retryable": False}
        outcome = {"status": "error", "result": None, "error": error}
    outcome["meta"] = {"started_at": started, "duration_ms": took, "worker": "w1"}
    return event("task.done", task=task, outcome=outcome, **{**RUN, **fields})


def envelopes_of(
    *rows: tuple[int, Event], execution_id: str = ID, trace_id: str | None = None
) -> list[Told]:
    """Events with their times, as readers see them."""
    return [
        (at, envelope(told, execution_id=execution_id, seq=seq, at=at, trace_id=trace_id))
        for seq, (at, told) in enumerate(rows, 1)
    ]


async def home_of(logs: dict[str, list[tuple[int, list[Event]]]]) -> MemoryStorage:
    """A home whose executions have these decisions, each with its time."""
    home = MemoryStorage()
    for execution_id, decisions in logs.items():
        seq = 0
        for at, events in decisions:
            row = ExecutionRow(
                execution_id=execution_id,
                path="demo",
                digest="d",
                status="running",
                started_at=decisions[0][0],
                updated_at=at,
            )
            decision = Decision(
                execution_id=execution_id,
                expected=seq,
                last=seq + len(events),
                at=at,
                events=msgspec.json.encode(events),
                row=row,
            )
            await home.log.append(decision)
            seq += len(events)
    return home


def questions(home: MemoryStorage) -> PlaneQuestions:
    """What may be asked of a home."""
    settings = Settings(home=Path())
    results = ResultStore(MemoryObjectStore())
    return PlaneQuestions(ControlPlane(settings, home, results=results, adopts=False))


async def listed(pieces: AsyncIterator[T]) -> list[T]:
    return [piece async for piece in pieces]


async def each(pieces: Iterable[T]) -> AsyncIterator[T]:
    for piece in pieces:
        yield piece


def run(work: Any) -> Any:
    return asyncio.run(work)
