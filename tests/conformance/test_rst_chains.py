"""RST: a restart of a restart keeps what either recorded, and proves itself like the first."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_rst_answers import again
from tests.support.scenario import error, ok
from tests.support.steps import arc, call, loop, playbook, step
from tests.support.waiting import STAGES, Stage, staged

from noetl.api.questions import PlaneQuestions
from noetl.errors import BodyLost
from noetl.messages import events as e
from noetl.messages.outcome import Outcome
from noetl.messages.reference import Reference
from noetl.node.housekeeping import retention_of
from noetl.server.policies import policies_of
from noetl.tools.tool import ToolCall

EVERYWHERE = pytest.mark.parametrize("where", STAGES)
LONG = "y" * 400
TEXT = playbook(
    step("make", call("make"), arcs=[arc("each")]),
    step(
        "each",
        call("work", body="{{ iter.n }}"),
        loop=loop([0, 1, 2, 3], mode="parallel", on_failure="continue"),
        arcs=[arc("check")],
    ),
    step("check", call("check", body="{{ event.loop.failed | default(0) }}")),
    executor={"spec": {"policy": {"limits": {"max_payload_bytes": 300}}}},
)


class Improving:
    """A task of which fewer iterations fail each time."""

    def __init__(self) -> None:
        self.fails = {1, 2}

    def __call__(self, asked: ToolCall[Any]) -> Outcome:
        number = asked.inputs.body
        return error("x") if number in self.fails else ok(f"{number}{LONG}")


async def chain(stage: Stage) -> list[str]:
    """Three executions, each a restart of the one before; the last completes."""
    work = Improving()
    stage.tools.answers["make"] = [ok(LONG)]
    stage.tools.answers["work"] = [work]
    stage.tools.answers["check"] = [error("not all are there"), error("not yet"), ok("all")]
    first = await stage.start(TEXT)
    assert (await stage.ended(first)).status == "failed"
    work.fails = {2}
    second = await again(stage, first, "each:1,2")
    assert (await stage.ended(second)).status == "failed"
    work.fails = set()
    third = await again(stage, second, "each:2")
    assert (await stage.ended(third)).status == "completed"
    return [first, second, third]


def ran(stage: Stage, execution_id: str) -> list[Any]:
    calls = [one for one in stage.tools.calls if one.execution_id == execution_id]
    return [one.inputs.body if one.label == "work" else one.label for one in calls]


@pytest.mark.rule("RST-1", "RST-2", "RST-3", "EVT-5")
@EVERYWHERE
def test_each_restart_runs_what_was_chosen_and_keeps_all_the_rest(
    where: str, tmp_path: Path
) -> None:
    async def test(stage: Stage) -> None:
        first, second, third = await chain(stage)
        assert sorted(map(str, ran(stage, first))) == ["0", "1", "2", "3", "check", "make"]
        assert sorted(map(str, ran(stage, second))) == ["1", "2", "check"]
        assert ran(stage, third) == [2, "check"]
        rows = [await stage.plane.row(name) for name in (first, second, third)]
        assert [row.origin_execution_id for row in rows] == [None, first, second]

    staged(test, where, tmp_path)


@pytest.mark.rule("RST-1")
@EVERYWHERE
def test_a_difference_over_a_chain_names_what_ran_anew(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        first, second, third = await chain(stage)
        asked = PlaneQuestions(stage.plane)
        over = await asked.differences(first, third)
        assert [(one.within or one.step, one.task) for one in over.differences] == [
            ("each:1", "work"),
            ("each:2", "work"),
            ("check", "check"),
        ]
        of_one = {one.within: one for one in over.differences}["each:1"]
        assert of_one.left is not None
        assert of_one.right is not None
        assert (of_one.left.status, of_one.left.execution_id) == ("failed", first)
        assert (of_one.right.status, of_one.right.execution_id) == ("ok", second), "not the third's"
        last = await asked.differences(second, third)
        assert [one.within or one.step for one in last.differences] == ["each:2", "check"]
        assert over.same == 3
        assert last.same == 4

    staged(test, where, tmp_path)


@pytest.mark.rule("RST-3", "KEEP-1")
@EVERYWHERE
def test_bodies_stay_as_long_as_the_last_of_a_chain_refers_to_them(
    where: str, tmp_path: Path
) -> None:
    async def test(stage: Stage) -> None:
        names = await chain(stage)
        plane = stage.plane
        bodies = await references(stage, names[0])
        assert bodies, "its results lie outside the log"
        gone: list[str] = []
        async with retention_of(plane) as retention:
            for left in (2, 1, 0):
                assert [await plane.results.fetch(one) for one in bodies] != []
                await passed()
                removed = await retention.remove(policies_of("0s"))
                await retention.clear()
                assert removed == [names[left]], "the last first, and nothing that it needs"
                gone += removed
        assert gone == names[::-1]
        for one in bodies:
            with pytest.raises(BodyLost):
                await plane.results.fetch(one)

    staged(test, where, tmp_path)


async def passed() -> None:
    """What ended in this very millisecond is not older than now."""
    now = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 == now:
        await asyncio.sleep(0)


async def references(stage: Stage, execution_id: str) -> list[Reference]:
    """The bodies that tasks of an execution came to."""
    events = await stage.events(execution_id)
    results = [one.outcome.get("result") for one in events if isinstance(one, e.TaskDone)]
    return [one for one in results if isinstance(one, Reference)]
