"""TASK-10: a step's timeout bounds its loop too, whoever runs it; its lease is its own."""

from pathlib import Path

import pytest
from tests.support.canned import CannedTools, Silence
from tests.support.cluster import Cluster, clustered
from tests.support.scenario import Gate, ok, scenario
from tests.support.steps import arc, call, loop, otherwise, playbook, step

from noetl.messages import events as e


@pytest.mark.rule("TASK-10", "LOOP-4", "LOOP-5")
@pytest.mark.parametrize("where", ["local", "distributed"])
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_a_loop_that_takes_too_long_fails_with_what_it_came_to(mode: str, where: str) -> None:
    silence = Silence()
    looped = loop([1, 2], mode=mode, exec=where, reduce={"seen": "append"})
    late = arc("late", "event.error.kind == 'timeout'", loop="{{ event.loop }}")
    made = scenario(
        step(
            "start",
            call("ask", otherwise(set_ctx={"seen": "{{ iter.n }}"})),
            loop=looped,
            arcs=[late],
            timeout=0.05,
        ),
        step("late", call("tell")),
    )
    ran = made.answers("ask", ok("first"), silence).run()
    assert silence.cancelled == 1
    assert ran.status == "completed"
    assert ran.ctx == {"seen": [1]}
    told = ran.one(e.TokenCreated, step="late").args["loop"]
    assert (told["total"], told["done"], told["results"][:1]) == (2, 1, ["first"])
    assert ran.story("start")[-3:] == ["step.failed", "next.evaluated", "next.fired"]


@pytest.mark.rule("TASK-10", "WRK-1")
def test_a_step_has_a_lease_of_its_own(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        gate = Gate()
        tools.answers = {"own": [gate], "usual": [gate]}
        server = await cluster.server()
        cluster.worker(tools)
        text = playbook(
            step("start", arcs=[arc("mine"), arc("theirs")], mode="inclusive"),
            step("mine", call("own"), lease={"ttl": 77, "heartbeat": 5}),
            step("theirs", call("usual")),
        )
        execution_id = await cluster.start(text)
        held = await gate.held(2)
        leases = sorted(one.ttl for one in server.dispatcher.leases.all())
        assert leases == [10.0, 77.0]
        for one in held:
            await gate.let_go(one)
        assert (await cluster.end_of(execution_id)).status == "completed"

    clustered(test, tmp_path)
