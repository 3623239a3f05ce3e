"""What counts as standing still."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.simulation.standing import QUIET, Standing

from noetl.adapters.memory.tables import ClaimRow, MemoryTables
from noetl.control.execution import Execution, Part, Run
from noetl.ports.event_log import ExecutionRow
from noetl.ports.limits import LimitClaim

ROW = ExecutionRow(
    execution_id="a", path="p", digest="d", status="running", started_at=0, updated_at=0
)
LATE = 3 * QUIET


def tables(*names: str, **parents: str) -> MemoryTables:
    made = MemoryTables()
    for name in names:
        made.rows[name] = replace(ROW, execution_id=name, parent_execution_id=parents.get(name))
    return made


def claim(made: MemoryTables, name: str, granted: bool) -> None:
    made.claims[name, ""] = ClaimRow(
        claim=LimitClaim(execution_id=name, holder="", group="g", key="", at_once=1),
        process="s0",
        turn=0,
        asked_at=0,
        granted_at=1 if granted else None,
    )


def found(made: MemoryTables, *states: Execution, **named: Any) -> list[str]:
    standing = Standing(made, 0.0)
    acted = named.pop("acted", {})
    return standing.found(states, acted, LATE, **{"crowded": False, **named})


def test_each_is_asked_for_itself() -> None:
    assert found(tables("a", "b"), acted={"a": LATE}) == ["b"]


def test_a_parent_may_wait_for_its_child_and_the_child_for_nobody() -> None:
    assert found(tables("a", "b", b="a")) == ["b"]


@pytest.mark.parametrize("granted", [True, False])
def test_a_queue_is_a_reason_while_another_has_the_place(granted: bool) -> None:
    made = tables("a", "b")
    claim(made, "a", granted)
    claim(made, "b", False)
    assert found(made) == (["a"] if granted else ["a", "b"])


def test_a_part_may_wait_for_a_worker_with_room() -> None:
    run = Run(step_run_id="4.0", step="s", args={}, ctx={})
    run.parts[0] = Part(part=0)
    busy, idle = Execution(execution_id="a"), Execution(execution_id="b")
    busy.runs["4.0"] = run
    assert found(tables("a", "b"), busy, idle, crowded=True) == ["b"]
    assert found(tables("a", "b"), busy, idle) == ["a", "b"]
    assert found(tables("a"), busy, crowded=True, held=frozenset("a")) == ["a"]


def test_time_counts_from_the_last_reason() -> None:
    made = tables("a", "b", b="a")
    standing = Standing(made, 0.0)
    assert standing.found([], {"b": LATE}, LATE, crowded=False) == []
    del made.rows["b"]
    assert standing.found([], {}, LATE + QUIET - 1, crowded=False) == []
    assert standing.found([], {}, LATE + QUIET + 1, crowded=False) == ["a"]
