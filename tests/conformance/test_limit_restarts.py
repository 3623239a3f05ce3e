"""LIMIT and RST together: what a restart takes over waits for its place like everything else."""

from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_limit import limited, waits
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered, turns, until
from tests.support.scenario import Gate, error
from tests.support.steps import arc, call, loop, playbook, step

from noetl.messages import events as e
from noetl.node.server import ServerNode


def two_tasks(**limit: Any) -> str:
    """A cancelled run of `work` goes on at its second task."""
    return playbook(
        step("start", call("begin"), arcs=[arc("work")]),
        step("work", call("first"), call("second"), limit=limit, arcs=[arc("after")]),
        step("after", call("end")),
    )


def in_a_loop(**limit: Any) -> str:
    return playbook(
        step("start", call("begin"), arcs=[arc("work")]),
        step(
            "work",
            call("second"),
            limit=limit,
            loop=loop([1, 2, 3], mode="parallel", exec="distributed", flight=1),
            arcs=[arc("after")],
        ),
        step("after", call("end")),
    )


async def cut_short(cluster: Cluster, server: ServerNode, gate: Gate, text: str) -> str:
    """An execution that was cancelled in the middle of its limited step."""
    old = await cluster.start(text)
    await gate.held(1)
    await server.order(old, "cancel")
    assert (await cluster.end_of(old)).status == "cancelled"
    return old


async def one_by_one(cluster: Cluster, server: ServerNode, gate: Gate, *names: str) -> None:
    """Let everything go that is held, of which there is never more than one."""

    async def are_ended() -> bool:
        return all([(await server.row(name)).finished_at is not None for name in names])

    while not await are_ended():
        held = list(gate._waiting)
        assert len(held) <= 1, "one at once"
        for key in held:
            await gate.let_go(key)
        await turns(1)
    for name in names:
        assert (await cluster.end_of(name)).status == "completed"
    assert not cluster.root.tables.claims, "nothing leaks"


@pytest.mark.rule("LIMIT-3", "RST-1")
@pytest.mark.parametrize("text", [two_tasks(at_once=1), in_a_loop(at_once=1)], ids=["run", "loop"])
def test_a_run_that_is_taken_over_waits_for_its_place(tmp_path: Path, text: str) -> None:
    async def test(cluster: Cluster) -> None:
        tools, cut, gate = CannedTools(), Gate(), Gate()
        tools.answers["second"] = [cut, gate]
        server = await cluster.server()
        cluster.worker(tools)
        old = await cut_short(cluster, server, cut, text)
        other = await cluster.start(text)
        await gate.held(1)
        new = (await server.restarts.restart(old)).execution_id
        await turns()
        (wait,) = await waits(server, new)
        assert (wait.step, wait.kind) == ("work", "limit")
        assert wait.step_run_id is not None
        assert "the limit of step 'work' (at_once: 1) is reached" in wait.words
        await one_by_one(cluster, server, gate, other, new)
        parked = [one for one in await cluster.events(new) if isinstance(one, e.StepParked)]
        assert [one.reason for one in parked] == ["limit"]

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-2", "RST-1")
def test_what_was_taken_over_keeps_its_place_through_a_pause(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, cut, gate = CannedTools(), Gate(), Gate()
        tools.answers["second"] = [cut, gate]
        server = await cluster.server()
        cluster.worker(tools)
        text = two_tasks(at_once=1)
        old = await cut_short(cluster, server, cut, text)
        other = await cluster.start(text)
        await gate.held(1)
        new = (await server.restarts.restart(old)).execution_id
        await server.order(new, "pause")
        await gate.let_go((await gate.held(1))[0])
        await cluster.end_of(other)
        active = server.server.find(new)
        assert active is not None
        (run,) = active.execution.runs.values()
        await until(lambda: run.parked is not None and run.parked.reason == "paused")
        (wait,) = await waits(server, new)
        assert wait.words == "it waits because the execution is paused"
        third = await cluster.start(text)
        await server.order(new, "resume")
        await one_by_one(cluster, server, gate, new, third)

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-2", "LIMIT-3", "RST-1")
def test_what_was_taken_over_and_waits_can_be_cancelled_and_restarted(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, cut, gate = CannedTools(), Gate(), Gate()
        tools.answers["second"] = [cut, gate]
        server = await cluster.server()
        cluster.worker(tools)
        text = two_tasks(at_once=1)
        old = await cut_short(cluster, server, cut, text)
        other = await cluster.start(text)
        await gate.held(1)
        new = (await server.restarts.restart(old)).execution_id
        await server.order(new, "cancel")
        assert (await cluster.end_of(new)).status == "cancelled"
        again = (await server.restarts.restart(new)).execution_id
        await one_by_one(cluster, server, gate, other, again)
        assert [call.label for call in tools.calls].count("first") == 2, "not run again"

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-2", "NEXT-5")
def test_fail_fast_ends_what_was_taken_over_and_waits(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, cut, gate = CannedTools(), Gate(), Gate()
        tools.answers["second"] = [cut, gate]
        tools.answers["side"] = [Gate(), error("x")]
        server = await cluster.server()
        cluster.worker(tools)
        text = playbook(
            step(
                "start",
                call("begin"),
                arcs=[arc("work"), arc("side", "workload.both")],
                mode="inclusive",
            ),
            step("work", call("second"), limit={"at_once": 1}),
            step("side", call("side")),
            executor={"spec": {"policy": {"fail_fast": True}}},
            workload={"both": False},
        )
        old = await cluster.start(text, {"both": True})
        await until(lambda: {"second", "side"} <= {call.label for call in tools.calls})
        await server.order(old, "cancel")
        assert (await cluster.end_of(old)).status == "cancelled"
        other = await cluster.start(text)
        await gate.held(1)
        new = (await server.restarts.restart(old)).execution_id
        assert (await cluster.end_of(new)).status == "failed"
        await one_by_one(cluster, server, gate, other)

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-2", "NEXT-6")
def test_a_limited_final_step_runs_after_everything_was_stopped(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        tools.answers["work"] = [error("x")]
        await cluster.server()
        cluster.worker(tools)
        text = playbook(
            step("start", call("work")),
            step("last", call("tidy"), limit={"at_once": 1}),
            executor={"spec": {"final_step": "last", "policy": {"fail_fast": True}}},
        )
        assert (await cluster.run(text)).status == "failed"
        assert [call.label for call in tools.calls] == ["work", "tidy"]
        assert not cluster.root.tables.claims, "nothing leaks"

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-2", "RST-1")
def test_a_restart_that_is_queued_can_be_cancelled(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, cut, gate = CannedTools(), Gate(), Gate()
        tools.answers["work"] = [cut, gate]
        server = await cluster.server()
        cluster.worker(tools)
        text = limited(at_once=1)
        old = await cut_short(cluster, server, cut, text)
        other = await cluster.start(text)
        await gate.held(1)
        new = (await server.restarts.restart(old)).execution_id
        assert (await server.row(new)).status == "queued"
        await server.order(new, "cancel")
        assert (await cluster.end_of(new)).status == "cancelled"
        again = (await server.restarts.restart(new)).execution_id
        await one_by_one(cluster, server, gate, other, again)

    clustered(test, tmp_path)
