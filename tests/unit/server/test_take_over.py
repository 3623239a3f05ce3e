"""A server that takes over: whoever worked goes on for a full term, and nobody beside him."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered, is_claimed, turns, until
from tests.support.scenario import Gate, ok
from tests.support.steps import call, playbook, step

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.memory.storage import MemoryStorage
from noetl.control.dispatch import Command
from noetl.messages.events import StepFailed
from noetl.messages.requests import RULES, PartClaimed, Report, StartExecution
from noetl.playbook.load import load_valid
from noetl.playbook.plan import make_plan
from noetl.ports.bodies import Bodies
from noetl.ports.link import Hold
from noetl.ports.result_store import ResultStore
from noetl.server.lease_keeper import LeaseKeeper
from noetl.server.leases import Leases, key_of
from noetl.server.server import Server
from noetl.server.waiting_parts import WaitingParts

ONE = playbook(step("first", call("fetch")))


@pytest.mark.rule("WRK-1")
def test_a_part_whose_worker_came_back_is_not_offered_again(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate(ok(1))
        tools.answers["fetch"] = [gate]
        first = await cluster.server()
        worker = cluster.worker(tools)
        execution_id = await cluster.start(ONE)
        (key,) = await gate.held(1)
        await until(lambda: is_claimed(first, execution_id))
        await cluster.kill_server(first)
        second = await cluster.server()
        await until(lambda: second.server.find(execution_id))
        await until(lambda: second.dispatcher.leases.of_worker(worker.name))
        active = second.server.find(execution_id)
        assert active is not None
        (run,) = active.execution.runs.values()
        # As a timer, or the end of a load, would: it was due before the worker came back.
        second.server.handout.offer_when_due((active, run.step_run_id, 0), None)
        await turns(5)
        assert second.dispatcher.parts.pools() == {}
        await gate.let_go(key)
        assert (await cluster.end_of(execution_id)).status == "completed"
        assert len(tools.calls) == 1

    clustered(test, tmp_path)


@pytest.mark.rule("WRK-1")
async def test_a_lease_found_in_the_log_lasts_a_full_term() -> None:
    """Its worker calls about other parts and renews this one at the owner before, which is dead."""
    now, ttl = 100.0, 10.0
    results = ResultStore(MemoryObjectStore())
    server = Server(
        log=MemoryStorage().log, results=results, bodies=Bodies(results), me="1", run_ahead=True
    )
    keeper = LeaseKeeper(server, WaitingParts(), ttl, lambda: now)
    found, granted = Hold("x1", "4.0", 0, 1), Hold("x2", "4.0", 0, 1)
    keeper.grant_to("w", found, ttl)
    keeper.grant_to("w", granted, ttl).heard = True
    now += 0.6 * ttl
    keeper.renew("w", "default", [])
    assert keeper.leases.find(key_of(found)) is not None
    assert keeper.leases.find(key_of(granted)) is None, "its grant got lost, and nobody runs it"
    now += 0.5 * ttl
    keeper.expire()
    assert keeper.leases.find(key_of(found)) is None


class Nobody:
    """A runner that runs nothing: what is reported is the test's to say."""

    name = "nobody"

    def __init__(self) -> None:
        self.begun: list[Command] = []

    def begin(self, command: Command, *_: Any) -> None:
        self.begun.append(command)

    def run_through(self, *_: Any) -> None:
        return None

    async def cancel(self, *_: Any) -> None:
        """There is nothing to end."""

    async def forget(self, *_: Any) -> None:
        """There is nothing to drop."""

    def keeps(self, *_: Any) -> bool:
        return False


@pytest.mark.rule("EVT-3")
async def test_whoever_worked_for_an_owner_before_is_not_heard() -> None:
    """Its lease stands in the log, and the part has been offered again."""
    home, results = MemoryStorage(), ResultStore(MemoryObjectStore())
    server = Server(log=home.log, results=results, bodies=Bodies(results), me="1", run_ahead=True)
    server.runner = runner = Nobody()
    plan = make_plan(load_valid(ONE), ONE)
    start = StartExecution(execution_id="x1", path=plan.path, digest=plan.digest, rules=RULES)
    active = server.start(start, plan, None, term=1)
    await until(lambda: runner.begun)
    (first,) = runner.begun
    claimed = PartClaimed(step_run_id="4.0", part=0, epoch=first.epoch, worker="w")
    await server.receive(active, claimed).committed
    server.release("x1")
    again = server.go_on(deepcopy(active.execution), plan, home.tables.rows["x1"], None, term=2)
    await until(lambda: len(runner.begun) == 2)
    failed = StepFailed(step="first", step_run_id="4.0", error={"kind": "http", "message": "no"})

    def told(epoch: int) -> Report:
        return Report(step_run_id="4.0", part=0, epoch=epoch, worker="w", events=[failed])

    assert server.take("x1", told(first.epoch)).events == []
    assert not again.execution.finished
    assert server.take("x1", told(runner.begun[1].epoch)).events
    assert again.execution.finished


@pytest.mark.rule("WRK-1", "EVT-3")
def test_only_the_present_lease_is_renewed() -> None:
    now, ttl = 100.0, 10.0
    leases = Leases(lambda: now)
    old, new = Hold("x1", "4.0", 0, 1), Hold("x1", "4.0", 0, 2)
    leases.grant(old, "w", ttl)
    leases.grant(new, "w", ttl)
    now += 0.5 * ttl
    assert leases.renew("w", [old]) == [old]
    assert leases.renew("other", [new]) == [new]
    now += 0.6 * ttl
    assert [lease.hold for lease in leases.expired()] == [new]
    assert leases.renew("w", [new]) == []
    assert leases.expired() == []


@pytest.mark.rule("SRV-3")
def test_one_that_falls_again_and_again_is_left_alone_for_longer_each_time(tmp_path: Path) -> None:
    """Promise 7: to load it takes the time of the others."""

    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate(ok(1))
        tools.answers["fetch"] = [gate]
        node = await cluster.server()
        cluster.worker(tools)
        execution_id = await cluster.start(ONE)
        (key,) = await gate.held(1)
        await until(lambda: is_claimed(node, execution_id))
        for _ in range(3):
            await until(lambda: node.server.find(execution_id))
            active = node.server.find(execution_id)
            assert active is not None
            node.server.drop(active, RuntimeError("once more"))
            await turns(2)
        assert await node.ownership.bring(execution_id) == "later"
        assert "once more" in node.ownership.aside[execution_id]
        told = [line for line in cluster.said if f"{execution_id} is loaded again" in line]
        assert [line.partition("again")[2].partition(":")[0] for line in told] == [
            "",
            "",
            " after 1 s",
        ]
        await until(lambda: node.server.find(execution_id))
        assert execution_id not in node.ownership.aside
        await gate.let_go(key)
        assert (await cluster.end_of(execution_id)).status == "completed"

    clustered(test, tmp_path)
