"""What the table of triggers promises, on every adapter."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.contracts.homes import Homes, decision
from tests.contracts.homes import row as execution_row

from noetl.ports.triggers import WATCH, EndedExecution, Noted, TriggerRow


def row(path: str, **fields: Any) -> TriggerRow:
    return TriggerRow(**{"path": path, "kind": "schedule", "version": 1, "since": 5, **fields})


@pytest.mark.rule("START-1")
async def test_a_row_is_kept_and_replaced_as_a_whole(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    full = row(
        "a/b",
        planned_at=10,
        due_at=12,
        last_at=3,
        last_execution_id="e",
        skipped_at=4,
        skipped_why="why",
        waits_for="e",
    )
    await home.triggers.put(full)
    assert await other.triggers.find("a/b") == full
    await other.triggers.put(row("a/b", paused=True, version=2))
    assert await home.triggers.find("a/b") == row("a/b", paused=True, version=2)
    assert await home.triggers.find("a") is None
    assert await home.triggers.remove("a/b")
    assert not await home.triggers.remove("a/b")
    assert await other.triggers.find("a/b") is None


async def test_pages_are_in_the_order_of_paths(homes: Homes) -> None:
    home = await homes.open()
    for path in ("c", "a", "b"):
        await home.triggers.put(row(path, kind="webhook" if path == "b" else "schedule"))
    await home.triggers.put(row(WATCH, kind="ends"))
    assert [one.path for one in await home.triggers.page()] == ["a", "b", "c"]
    assert [one.path for one in await home.triggers.page(after="a", limit=1)] == ["b"]
    assert [one.path for one in await home.triggers.page(kind="schedule")] == ["a", "c"]


@pytest.mark.rule("START-2")
async def test_what_is_due_is_taken_once_and_longest_first(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    await home.triggers.put(row("late", planned_at=1, due_at=10))
    await home.triggers.put(row("later", planned_at=1, due_at=5))
    await home.triggers.put(row("future", planned_at=1, due_at=200))
    await home.triggers.put(row("paused", planned_at=1, due_at=1, paused=True))
    await home.triggers.put(row("called", kind="webhook"))
    assert [one.path for one in await home.triggers.take(100, 150, 1)] == ["later"]
    assert [one.path for one in await other.triggers.take(100, 150, 9)] == ["late"]
    assert not await home.triggers.take(101, 150, 9)
    again = await other.triggers.take(150, 300, 9)
    assert [one.path for one in again] == ["later", "late"]
    assert [one.path for one in await home.triggers.take(200, 300, 9)] == ["future"]


async def test_many_that_take_at_once_are_given_different_rows(homes: Homes) -> None:
    opened = [await homes.open() for _ in range(3)]
    for number in range(30):
        await opened[0].triggers.put(row(f"t{number}", planned_at=1, due_at=number))
    turns = [home.triggers.take(1000, 9000, 7) for home in opened for _ in range(2)]
    taken = [one.path for turn in await asyncio.gather(*turns) for one in turn]
    assert len(taken) == len(set(taken)) == 30


@pytest.mark.rule("START-2")
async def test_settling_needs_the_row_as_it_was_taken(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    await home.triggers.put(row("a", planned_at=1, due_at=1))
    (taken,) = await home.triggers.take(10, 1000, 1)
    made = replace(taken, planned_at=20, due_at=21, last_at=1, last_execution_id="e1")
    assert await other.triggers.settle(taken, made)
    assert not await home.triggers.settle(taken, replace(made, last_execution_id="e2"))
    assert await home.triggers.find("a") == made
    assert await home.triggers.take(21, 1000, 1) == [made]  # it was given back
    await home.triggers.put(replace(made, paused=True))
    assert not await home.triggers.settle(made, replace(made, planned_at=40))
    await home.triggers.put(replace(made, version=2))
    assert not await home.triggers.settle(made, replace(made, planned_at=40))


async def test_a_note_changes_nothing_else(homes: Homes) -> None:
    home = await homes.open()
    await home.triggers.put(row("a", planned_at=7, due_at=8))
    await home.triggers.note("a", Noted(at=3, execution_id="e"))
    await home.triggers.note("a", Noted(at=4, why="no playbook"))
    await home.triggers.note("gone", Noted(at=4, why="no playbook"))
    assert await home.triggers.find("a") == row(
        "a",
        planned_at=7,
        due_at=8,
        last_at=3,
        last_execution_id="e",
        skipped_at=4,
        skipped_why="no playbook",
    )


@pytest.mark.rule("START-6")
async def test_ended_executions_come_in_the_order_of_their_end(homes: Homes) -> None:
    home = await homes.open()
    for name, finished in (("e1", 30), ("e2", 10), ("e3", 20), ("e4", 20), ("e5", None)):
        status = "running" if finished is None else "completed"
        kept = execution_row(name, path="p", status=status, finished_at=finished)
        await home.log.append(decision(name, 0, row=kept))
    found = await home.triggers.ended(20, limit=2)
    assert [one.execution_id for one in found] == ["e3", "e4"]
    assert [one.execution_id for one in await home.triggers.ended(20, after="e4")] == ["e1"]
    assert found[0] == EndedExecution(
        execution_id="e3", path="p", status="completed", finished_at=20
    )
