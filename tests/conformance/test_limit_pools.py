"""LIMIT-1: how much runs at once in a pool, over servers and workers."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from tests.conformance.test_limit import Busy
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered, turns, until
from tests.support.scenario import Gate
from tests.support.steps import call, loop, playbook, step, task

from noetl.errors import LogUnavailable
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.codec import decode_events
from noetl.node.server import ServerNode
from noetl.ports.commit import Commit
from noetl.ports.event_log import Decision
from noetl.ports.pools import PoolRow
from noetl.server.waiting import waits_in

WORK = playbook(step("start", call("work")))
LOOP = playbook(
    step("start", call("work"), loop=loop(list(range(40)), mode="parallel", flight=40)),
)


async def limit(cluster: Cluster, at_once: int, pool: str = "default") -> None:
    await cluster.root.pools.put(PoolRow(name=pool, at_once=at_once, set_at=1))
    for server in cluster.servers:
        await server.pools.refresh()


async def begun(servers: list[ServerNode], text: str, count: int) -> list[str]:
    entry, _ = await servers[0].register(text)
    asks = [
        servers[n % len(servers)].execute(playbook_id=entry.playbook_id, payload={})
        for n in range(count)
    ]
    return [row.execution_id for row in await asyncio.gather(*asks)]


async def nothing_leaks(cluster: Cluster) -> None:
    await cluster.servers[0].storage.limits.abandoned()
    await until(lambda: not cluster.root.tables.claims)


def busy_tools() -> tuple[CannedTools, Busy]:
    tools, busy = CannedTools(), Busy()
    tools.answers["work"] = [busy]
    return tools, busy


@pytest.mark.rule("LIMIT-1", "LIMIT-3")
def test_five_hundred_starts_against_four_places_of_a_pool_while_servers_die(
    tmp_path: Path,
) -> None:
    """T16 on a pool: never five, none forgotten."""

    async def test(cluster: Cluster) -> None:
        tools, busy = busy_tools()
        servers = [await cluster.server() for _ in range(3)]
        await limit(cluster, 4)
        for _ in range(3):
            cluster.worker(tools)
        ids = await begun(servers, WORK, 500)
        for _ in range(2):
            ended = busy.ended
            await until(lambda ended=ended: busy.ended >= ended + 40)
            await cluster.kill_server(cluster.servers[-1])
        for name in ids:
            assert (await cluster.end_of(name)).status == "completed"
        assert 1 <= busy.most <= 4
        await nothing_leaks(cluster)

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-1", "LIMIT-3")
def test_parts_of_loops_count_too(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, busy = busy_tools()
        servers = [await cluster.server() for _ in range(2)]
        await limit(cluster, 3)
        for _ in range(2):
            cluster.worker(tools)
        for name in await begun(servers, LOOP, 3):
            assert (await cluster.end_of(name)).status == "completed"
        assert busy.ended == 120
        await nothing_leaks(cluster)

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-1", "LIMIT-2")
def test_what_waits_says_so_and_can_be_cancelled(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        server = await cluster.server()
        await limit(cluster, 1)
        cluster.worker(tools)
        first, second, third = await begun([server], WORK, 3)
        await gate.held(1)
        told = [await said(server, name) for name in (first, second, third)]
        waiting = sorted(one for one in told if one.startswith("place"))
        (runs,) = [name for name in (first, second, third) if not await said(server, name)]
        reached = f"the limit of pool 'default' (at_once: 1) is reached; held by {runs}"
        assert waiting == [f"place {place} in the queue: {reached}" for place in (1, 2)]
        queued = [name for name in (first, second, third) if await said(server, name)]
        await server.order(queued[0], "cancel")
        assert (await cluster.end_of(queued[0])).status == "cancelled"
        await gate.let_go((await gate.held(1))[0])
        await gate.let_go((await gate.held(1))[0])
        assert (await cluster.end_of(queued[1])).status == "completed"
        await nothing_leaks(cluster)

    clustered(test, tmp_path)


async def said(server: ServerNode, execution_id: str) -> str:
    execution, plan = await server.state(execution_id)
    reasons = await waits_in(server.storage, execution, plan, "server-1")
    return reasons[0].words if reasons and reasons[0].kind == "limit" else ""


@pytest.mark.rule("LIMIT-1")
def test_a_limit_can_be_changed_and_removed_while_things_wait(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        server = await cluster.server()
        await limit(cluster, 1)
        cluster.worker(tools)
        ids = await begun([server], WORK, 6)
        await gate.held(1)
        await limit(cluster, 3)
        await gate.held(3)
        assert len(server.pools._waits) == 3
        await cluster.root.pools.remove("default")
        await server.pools.refresh()
        for key in await gate.held(6):
            await gate.let_go(key)
        for name in ids:
            assert (await cluster.end_of(name)).status == "completed"
        await nothing_leaks(cluster)

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-1")
def test_other_pools_are_not_bound_and_a_wait_takes_no_place(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        server = await cluster.server()
        await limit(cluster, 1)
        await limit(cluster, 1, pool="gpu")
        cluster.worker(tools)
        waiting = playbook(step("start", task("wait", "wait", signal="go"), call("work")))
        ids = await begun([server], waiting, 3)
        await until(lambda: all(is_parked(server, name) for name in ids))
        (other,) = await begun([server], WORK, 1)
        await gate.let_go((await gate.held(1))[0])
        assert (await cluster.end_of(other)).status == "completed"
        for name in ids:
            await server.order(name, "cancel")
            assert (await cluster.end_of(name)).status == "cancelled"
        await nothing_leaks(cluster)

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-1", "LIMIT-3")
def test_a_server_that_died_before_it_gave_a_place_back_keeps_none(tmp_path: Path) -> None:
    """The part has ended in the log, and only the dead knew of its place."""

    async def test(cluster: Cluster) -> None:
        first = await cluster.server()
        await limit(cluster, 1)
        claims, limits = cluster.root.tables.claims, cast(Any, first.storage.limits)
        limits.release = lambda *_: asyncio.Event().wait()
        cluster.worker(CannedTools())
        waiting = playbook(step("start", task("wait", "wait", signal="go"), call("work")))
        (name,) = await begun([first], waiting, 1)
        await until(lambda: is_parked(first, name) and (name, "part 4.0/0") in claims)
        await cluster.kill_server(first)
        second = await cluster.server()
        await until(lambda: (name, "part 4.0/0") not in claims)
        await second.order(name, "cancel")
        assert (await cluster.end_of(name)).status == "cancelled"
        await nothing_leaks(cluster)

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-1", "LIMIT-3")
def test_a_part_that_ends_while_its_place_is_asked_for_keeps_none(tmp_path: Path) -> None:
    """A worker had it before the server did: the question comes after the end."""

    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        await limit(cluster, 1)
        cluster.worker(CannedTools())
        waiting = playbook(step("start", task("wait", "wait", signal="go"), call("work")))
        (name,) = await begun([server], waiting, 1)
        await until(lambda: is_parked(server, name) and not cluster.root.tables.claims)
        asked, limits = asyncio.Event(), cast(Any, server.storage.limits)
        take = limits.take

        async def taken(claims: Any) -> list[int]:
            places: list[int] = await take(claims)
            asked.set()
            return places

        limits.take = taken
        server.pools.keep("default", (name, "4.0", 0))
        await asked.wait()
        await until(lambda: not cluster.root.tables.claims)
        await server.order(name, "cancel")
        assert (await cluster.end_of(name)).status == "cancelled"

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-1", "LIMIT-3")
def test_a_part_whose_end_was_not_recorded_gets_a_place_again(tmp_path: Path) -> None:
    """Its place was given back, and once more when it had asked again: nobody was told of it."""

    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        server = await cluster.server()
        await limit(cluster, 1)
        log, limits = cast(Any, server.storage.log), cast(Any, server.storage.limits)
        append, release = log.append, limits.release
        released: list[str] = []
        again = asyncio.Event()

        def refuses(decision: Decision, *, alone: bool = False) -> Commit:
            if not any(isinstance(one, e.StepDone) for one in decode_events(decision.events)):
                return cast(Commit, append(decision, alone=alone))
            log.append = append
            commit = Commit()
            commit.settle(LogUnavailable("the disk is full"))
            return commit

        async def unheard(execution_id: str, holder: str = "") -> None:
            released.append(execution_id)
            if len(released) == 2:
                await again.wait()
            await release(execution_id, holder)
            if len(released) == 1:
                raise LogUnavailable("the answer is lost")

        log.append, limits.release = refuses, unheard
        worker = cluster.worker(tools)
        ids = await begun([server], WORK, 2)
        await gate.let_go((await gate.held(1))[0])
        claims = cluster.root.tables.claims
        await until(lambda: released and (released[0], "part 4.0/0") not in claims)
        await cluster.kill_worker(worker)  # it would report again
        others = CannedTools()
        others.answers["work"] = [second := Gate()]
        cluster.worker(others)
        (key,) = await second.held(1)  # the other execution has the place now
        await until(lambda: (released[0], "part 4.0/0") in claims)
        again.set()
        await until(lambda: len(released) == 2)
        await second.let_go(key)
        await until(lambda: second._waiting)
        await second.let_go((await second.held(1))[0])
        for name in ids:
            assert (await cluster.end_of(name)).status == "completed"
        await nothing_leaks(cluster)

    clustered(test, tmp_path, ttl=2.0)


@pytest.mark.rule("LIMIT-1", "LIMIT-3")
def test_a_part_that_is_cancelled_while_it_asks_for_its_place_keeps_none(tmp_path: Path) -> None:
    """The question was on its way when the place was given back: its answer claimed it anew."""

    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        await limit(cluster, 1)
        asked, go_on = asyncio.Event(), asyncio.Event()
        limits = cast(Any, server.storage.limits)
        take = limits.take

        async def slow(claims: Any) -> list[int]:
            asked.set()
            await go_on.wait()
            places: list[int] = await take(claims)
            return places

        limits.take = slow
        text = playbook(
            step("start", call("work")),
            step("last", call("work")),
            executor={"spec": {"final_step": "last", "policy": {"limits": {"timeout": 99}}}},
        )
        (name,) = await begun([server], text, 1)
        await asked.wait()
        active = server.server.find(name)
        assert active is not None
        server.server.receive(active, r.TimeIsUp(seconds=99.0))
        await until(lambda: active.execution.final_done)
        await turns()  # what can be given back without an answer has been given back
        go_on.set()
        cluster.worker(CannedTools())
        assert (await cluster.end_of(name)).status == "failed"
        await nothing_leaks(cluster)

    clustered(test, tmp_path)


def is_parked(server: ServerNode, execution_id: str) -> bool:
    active: Any = server.server.find(execution_id)
    return active is not None and any(not run.parts for run in active.execution.runs.values())
