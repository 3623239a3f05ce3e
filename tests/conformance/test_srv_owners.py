"""SRV-3: several servers; an execution has one owner, and the store refuses a stale one."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_wrk import CHAIN, labels
from tests.support.canned import CannedTools, Silence
from tests.support.cluster import Cluster, clustered, until
from tests.support.scenario import Gate, ok
from tests.support.steps import arc, call, loop, otherwise, playbook, step, task

from noetl.errors import ServerRefused, VersionConflict
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.outcome import failed
from noetl.node.children import DEEPEST


@pytest.mark.rule("SRV-3")
def test_another_server_goes_on_when_one_dies_and_its_worker_keeps_its_part(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        gate = Gate(ok("there"))
        tools.answers["store"] = [gate]
        first = await cluster.server()
        cluster.worker(tools)
        execution_id = await cluster.start(CHAIN)
        (key,) = await gate.held(1)
        await recorded(cluster, execution_id, e.TaskStarted, 2)
        await cluster.kill_server(first)
        second = await cluster.server()
        await until(lambda: second.server.find(execution_id) is not None)
        await gate.let_go(key)
        execution = await cluster.end_of(execution_id)
        assert execution.status == "completed"
        assert labels(tools) == {"fetch": 1, "store": 1, "tell": 1}
        row = await second.row(execution_id)
        assert row.status == "completed"

    clustered(test, tmp_path)


async def recorded(cluster: Cluster, execution_id: str, kind: type[e.Event], count: int) -> None:
    """Wait until the log has so many events of a kind."""
    while sum(isinstance(x, kind) for x in await cluster.events(execution_id)) < count:
        await asyncio.sleep(0)


@pytest.mark.rule("SRV-3")
def test_a_claim_unheard_by_the_log_makes_no_second_owner(
    tmp_path: Path,
) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        gate = Gate(ok("there"))
        tools.answers["fetch"] = [gate, ok("again")]
        first = await cluster.server()
        worker = cluster.worker(tools)
        execution_id = await cluster.start(CHAIN)
        (key,) = await gate.held(1)
        await cluster.kill_server(first)
        await gate.let_go(key)
        second = await cluster.server()
        execution = await cluster.end_of(execution_id)
        assert execution.status == "completed"
        events = await cluster.events(execution_id)
        owners = Counter((x.step_run_id, x.epoch) for x in events if isinstance(x, e.TokenClaimed))
        assert set(owners.values()) == {1}
        assert second.name != first.name
        assert worker.name in {x.worker for x in events if isinstance(x, e.TokenClaimed)}

    clustered(test, tmp_path, ttl=1.0)


@pytest.mark.rule("SRV-3")
def test_a_server_that_stops_hands_over_at_once(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        gate = Gate(ok(1))
        tools.answers["fetch"] = [gate]
        first = await cluster.server()
        second = await cluster.server()
        cluster.worker(tools)
        execution_id = await cluster.start(CHAIN)
        (key,) = await gate.held(1)
        cluster.servers.remove(first)
        await first.close()
        cluster.exchange.detach(first.name)
        await until(lambda: second.server.find(execution_id) is not None)
        await gate.let_go(key)
        assert (await cluster.end_of(execution_id)).status == "completed"

    clustered(test, tmp_path)


@pytest.mark.rule("SRV-3")
def test_the_store_refuses_a_stale_owner(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        tools.answers["fetch"] = [Silence()]
        stale = await cluster.server()
        cluster.worker(tools)
        execution_id = await cluster.start(CHAIN)
        await until(lambda: labels(tools)["fetch"] == 1)
        active = stale.server.find(execution_id)
        assert active is not None
        stale.storage.die()  # type: ignore[attr-defined]
        fresh = await cluster.server()
        await until(lambda: fresh.server.find(execution_id) is not None)
        await fresh.order(execution_id, "pause", "by its owner")
        before = await cluster.events(execution_id)
        with pytest.raises(VersionConflict):
            await stale.server.receive(
                active, r.CancelExecution(reason="by the stale one")
            ).committed
        assert await cluster.events(execution_id) == before
        assert stale.server.find(execution_id) is None
        await fresh.order(execution_id, "resume")
        await fresh.order(execution_id, "cancel")
        assert (await cluster.end_of(execution_id)).status == "cancelled"

    clustered(test, tmp_path)


@pytest.mark.rule("SRV-3")
def test_any_server_takes_orders_for_any_execution(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        silence = Silence()
        tools.answers["fetch"] = [silence]
        await cluster.server()
        other = await cluster.server()
        cluster.worker(tools)
        execution_id = await cluster.start(CHAIN)
        await until(lambda: labels(tools)["fetch"] == 1)
        await other.order(execution_id, "cancel", "from the other one")
        assert (await cluster.end_of(execution_id)).status == "cancelled"
        with pytest.raises(ServerRefused, match="there is nothing to cancel"):
            await other.order(execution_id, "cancel")

    clustered(test, tmp_path)


CHILD = playbook(step("inner", call("work")), metadata={"name": "child", "path": "tests/child"})
PARENT = playbook(
    step("outer", task("call", "playbook", path="tests/child"), arcs=[arc("after")]),
    step("after", call("tell")),
)


class WithChildren(CannedTools):
    """Canned answers for all but `playbook`, which is the real one."""

    def __getitem__(self, kind: str) -> Any:
        if kind == "playbook":
            from noetl.tools.playbook import PlaybookTool

            return PlaybookTool()
        return self


@pytest.mark.rule("SRV-3", "TOOL-1")
def test_children_run_on_the_catalog_and_end_with_their_parent(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = WithChildren()
        server = await cluster.server()
        cluster.worker(tools)
        await server.register(CHILD)
        execution = await cluster.run(PARENT)
        assert execution.status == "completed"
        (child,) = await server.storage.executions.children(execution.execution_id)
        assert (child.status, child.version) == ("completed", "1")
        silence = Silence()
        tools.answers["work"] = [silence]
        waiting = await cluster.start(PARENT)
        await until(lambda: labels(tools)["work"] == 2)
        await server.order(waiting, "cancel")
        assert (await cluster.end_of(waiting)).status == "cancelled"
        (child,) = await server.storage.executions.children(waiting)
        assert (child.status, silence.cancelled) == ("cancelled", 1)

    clustered(test, tmp_path)


@pytest.mark.rule("SRV-3", "TOOL-1")
@pytest.mark.parametrize("looped", [False, True], ids=["plain", "in a loop, with longer ids"])
def test_a_playbook_that_calls_itself_ends_at_servers(tmp_path: Path, looped: bool) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        cluster.worker(WithChildren())
        again = task("call", "playbook", path="tests/scenario")
        outer = step("outer", again, loop=loop([0])) if looped else step("outer", again)
        execution = await cluster.run(playbook(outer))
        assert execution.status == "failed"
        assert "does it call itself without an end?" in str(execution.error)
        assert len(await server.storage.executions.page()) <= DEEPEST + 1

    clustered(test, tmp_path)


@pytest.mark.rule("SRV-3", "TOOL-1")
def test_a_child_outlives_the_server_that_began_it(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = WithChildren()
        gate = Gate(ok("inner"))
        tools.answers["work"] = [gate]
        first = await cluster.server()
        await first.register(CHILD)
        cluster.worker(tools)
        execution_id = await cluster.start(PARENT)
        (key,) = await gate.held(1)
        await recorded(cluster, execution_id, e.TaskStarted, 1)
        await cluster.kill_server(first)
        await cluster.server()
        await gate.let_go(key)
        execution = await cluster.end_of(execution_id)
        assert execution.status == "completed"
        assert labels(tools) == {"work": 1, "tell": 1}

    clustered(test, tmp_path)


@pytest.mark.rule("SRV-3", "LOOP-2")
def test_a_loop_goes_on_where_it_was_after_both_planes_died(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        text = playbook(
            step("many", call("do"), loop=loop("{{ range(40) | list }}", mode="parallel", flight=4))
        )
        lame = CannedTools()
        gate = Gate()
        lame.answers["do"] = [*[ok(1)] * 11, gate]
        first = await cluster.server()
        worker = cluster.worker(lame)
        execution_id = await cluster.start(text)
        await gate.held(4)
        await recorded(cluster, execution_id, e.IterationDone, 11)
        await cluster.kill_worker(worker)
        await cluster.kill_server(first)
        await cluster.server()
        rest = CannedTools()
        cluster.worker(rest)
        execution = await cluster.end_of(execution_id)
        assert execution.status == "completed"
        events = await cluster.events(execution_id)
        done = Counter(x.index for x in events if isinstance(x, e.IterationDone))
        assert done == dict.fromkeys(range(40), 1)
        assert labels(rest)["do"] <= 29, "what was recorded is not run again"

    clustered(test, tmp_path, ttl=0.5)


@pytest.mark.rule("SRV-3", "SRV-1")
def test_one_key_starts_one_execution_on_whichever_server(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        servers = [await cluster.server(), await cluster.server()]
        entry, _ = await servers[0].register(CHAIN)
        rows = await asyncio.gather(
            *(
                servers[n % 2].execute(path=entry.path, payload={"n": 1}, key="again")
                for n in range(10)
            )
        )
        assert len({row.execution_id for row in rows}) == 1
        with pytest.raises(Exception, match="another request"):
            await servers[1].execute(path=entry.path, payload={"n": 2}, key="again")

    clustered(test, tmp_path)


@pytest.mark.rule("SRV-3")
def test_an_execution_that_cannot_be_read_is_set_aside_and_the_others_go_on(tmp_path: Path) -> None:
    """Promise 7."""

    async def test(cluster: Cluster) -> None:
        first = await cluster.server()
        bad = await cluster.start(CHAIN)
        good = await cluster.start(CHAIN)
        await cluster.kill_server(first)
        tables = cluster.root.tables
        digest = (await cluster.root.executions.find(bad)).digest  # type: ignore[union-attr]
        text = tables.playbooks[digest]
        tables.playbooks[digest] = ("not: [a, playbook", None)
        second = await cluster.server()
        await until(lambda: len(second.ownership.aside) == 2)
        tables.playbooks[digest] = text
        second.ownership.aside.clear()
        for execution_id in (bad, good):
            await second.ownership.bring(execution_id)
        cluster.worker(CannedTools())
        assert (await cluster.end_of(good)).status == "completed"
        assert (await cluster.end_of(bad)).status == "completed"

    clustered(test, tmp_path)


@pytest.mark.rule("SRV-1", "SRV-3")
def test_a_server_whose_log_is_silent_says_that_it_is_not_ready(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        assert server.health() == {"live": True, "ready": True, "waits_for": []}
        server.ownership.looked -= 60.0
        assert server.health() == {
            "live": True,
            "ready": False,
            "waits_for": ["the log does not answer"],
        }
        await until(lambda: server.health()["ready"])

    clustered(test, tmp_path)


@pytest.mark.rule("NEXT-8", "TASK-8")
def test_a_cancel_ends_what_pauses_without_a_worker(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        tools.answers["fetch"] = [failed("http", "not yet", retryable=True)]
        server = await cluster.server()
        worker = cluster.worker(tools)
        worker.worker.patience = 0.5
        retried = otherwise("retry", attempts=3, delay=3600)
        execution_id = await cluster.start(playbook(step("first", call("fetch", retried))))
        await until(lambda: labels(tools)["fetch"] == 1)
        await until(lambda: not worker.session.holds)
        await until(lambda: not server.dispatcher.leases.all())
        await server.order(execution_id, "cancel", "it takes too long")
        assert (await cluster.end_of(execution_id)).status == "cancelled"

    clustered(test, tmp_path)
