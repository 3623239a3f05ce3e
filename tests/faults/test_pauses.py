"""WAIT-6 across deaths: whoever takes over a paused execution finds its clocks where they stood."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_limit_embedded import House, housed
from tests.conformance.test_wait_runs import past
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered, until
from tests.support.scenario import error
from tests.support.steps import arc, call, loop, nested, playbook, step, when
from tests.support.waiting import waits

from noetl.control.execution import Execution
from noetl.control.waits_held import pending
from noetl.messages import events as e
from noetl.messages.codec import decode_events
from noetl.node.control_plane import ControlPlane
from noetl.server.replay import rows_of
from noetl.server.timers import now

AGAIN = when("_attempt == 1", "retry", attempts=2, delay=3600)
BRANCHES = [
    step("rest", waits("w", seconds=3600)),
    step("hear", waits("w", signal="x", timeout=7200), timeout=9000),
    step("each", waits("w", seconds=3600), loop=loop([1], mode="parallel")),
    step(
        "inner",
        nested("deep", loop([1], iterator="m", mode="parallel"), waits("w", seconds=3600)),
        loop=loop([1], mode="parallel"),
    ),
    step("back", call("work", AGAIN)),
]
TEXT = playbook(
    step("start", arcs=[arc(one["step"]) for one in BRANCHES], mode="inclusive"), *BRANCHES
)


def clocks(execution: Execution) -> dict[str, int]:
    """Everything that counts down in it → when it is due."""
    found: dict[str, int] = {}
    for wait in pending(execution):
        found[wait.task_run_id] = wait.awaits[0].get("due") or wait.due or 0
    for run in execution.runs.values():
        found[run.step_run_id] = run.since or 0
        for part, suspension in run.suspended.items():
            found[f"{run.step_run_id} {part}"] = suspension.due or 0  # of an hour
    return {name: due for name, due in found.items() if due}


async def events(plane: ControlPlane, execution_id: str, *kinds: type[e.Event]) -> list[Any]:
    rows = rows_of(plane.storage.log, execution_id)
    every = [event async for row in rows for event in decode_events(row.events)]
    return [one for one in every if isinstance(one, kinds)]


async def paused(plane: ControlPlane, execution_id: str) -> dict[str, int]:
    """All that waits does, and the execution is paused; its clocks as of then."""
    active = plane.server.find(execution_id)
    assert active is not None

    def stands() -> bool:
        suspended = [one for run in active.execution.runs.values() for one in run.suspended]
        return len(list(pending(active.execution))) == 4 and len(suspended) == 1

    await until(stands)
    await active.settled()
    before = clocks(active.execution)
    assert len(before) >= 6
    await plane.order(execution_id, "pause")
    await until(lambda: active.execution.status == "paused")
    await active.settled()
    return before


def assert_moved(before: dict[str, int], after: dict[str, int], by: int) -> None:
    """To the millisecond; who takes over a retry reckons its pause anew, and needs a moment."""
    kept = {name: due for name, due in after.items() if name in before}
    expected = {name: due + by for name, due in before.items()}
    off = {name: kept[name] - expected[name] for name in expected if kept[name] != expected[name]}
    assert all(" " in name and abs(far) < 60_000 for name, far in off.items()), off


@pytest.mark.rule("WAIT-6")
@pytest.mark.parametrize("dies", ["server", "worker", "both"])
def test_clocks_stand_although_whoever_paused_them_died(dies: str, tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        owner, tools = await cluster.server(), CannedTools()
        tools.answers["work"] = [error("x")]
        worker = cluster.worker(tools)
        execution_id = await cluster.start(TEXT)
        before = await paused(owner, execution_id)
        if dies != "worker":
            await cluster.kill_server(owner)
            owner = await cluster.server()
            await until(lambda: owner.server.find(execution_id) is not None)
        if dies != "server":
            await cluster.kill_worker(worker)
            cluster.worker(tools)
        await past(now())
        await owner.order(execution_id, "resume")
        active = owner.server.find(execution_id)
        assert active is not None
        await until(lambda: active.execution.status == "running")
        await active.settled()
        (resumed,) = await events(owner, execution_id, e.ExecutionResumed)
        assert resumed.paused > 0
        assert_moved(before, clocks(active.execution), resumed.paused)
        assert await events(owner, execution_id, e.WaitDone) == []
        await owner.order(execution_id, "cancel")
        assert (await cluster.end_of(execution_id)).status == "cancelled"

    clustered(test, tmp_path)


@pytest.mark.rule("WAIT-6", "CLI-1")
def test_a_run_that_ended_while_it_was_paused_goes_on_with_what_was_left(tmp_path: Path) -> None:
    """`noetl run` is paused and killed; `noetl resume` takes it up."""

    async def test(house: House) -> None:
        first = await house.node()
        active = await first.run_text(TEXT, folder=None, payload={})
        execution_id = active.execution_id
        before = await paused(first, execution_id)
        house.nodes.remove(first)
        await first.close()
        second = await house.node()
        await past(now())
        again = await second.take_up(execution_id)
        await until(lambda: again.execution.status == "running")
        await again.settled()
        (resumed,) = await events(second, execution_id, e.ExecutionResumed)
        assert_moved(before, clocks(again.execution), resumed.paused)
        await second.order(execution_id, "cancel")
        async with asyncio.timeout(60):
            await again.finished

    housed(test, tmp_path, error("x"))
