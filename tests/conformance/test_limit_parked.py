"""LIMIT: a queue is kept in the home, and in no server's memory."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest
from tests.conformance.test_limit import limited, names, waits
from tests.conformance.test_start_subjects import until_true
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered, until
from tests.support.scenario import Gate

from noetl.api.questions import PlaneQuestions
from noetl.messages import requests as r
from noetl.server import limits as keeping


class Counted:
    """Counts what is asked of a store."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.made: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.made[name] += 1
        return getattr(self._store, name)


@pytest.mark.rule("LIMIT-2", "LIMIT-3", "WAIT-4")
def test_no_server_keeps_queued_executions_in_memory(tmp_path: Path) -> None:
    """They are in the home, with place and reason, and orders find them there."""

    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        server, other = await cluster.server(), await cluster.server()
        cluster.worker(tools)
        first, *queue = [await cluster.start(limited(at_once=1)) for _ in range(9)]
        await gate.held(1)
        await until(lambda: [one.execution_id for one in server.server.owned] == [first])
        assert [row.owner for row in await server.storage.executions.page(status="queued")] == (
            [None] * 8
        )
        (wait,) = await waits(other, queue[7])
        assert wait.words.startswith("place 8 in the queue: the limit of playbook")
        (listed,) = await PlaneQuestions(other).listed([await other.row(queue[7])])
        assert (listed.status, listed.interrupted) == ("queued", False)
        await other.order(queue[0], "cancel", "no need")
        await other.signal(queue[1], r.SendSignal(signal="go"))
        assert (await cluster.end_of(queue[0])).status == "cancelled"

        async def kept() -> bool:
            return "signal.received" in names(await cluster.events(queue[1]))

        await until_true(kept)
        await until(lambda: [one.execution_id for one in server.server.owned] == [first])
        await until(lambda: other.server.owned == [])
        await cluster.kill_server(server)
        for name in [first, *queue[1:]]:
            await gate.let_go((await gate.held(1))[-1])
            assert (await cluster.end_of(name)).status == "completed"
        assert not cluster.root.tables.claims, "nothing leaks"

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-2", "TOOL-1")
def test_all_who_wait_for_queued_executions_look_together(tmp_path: Path) -> None:
    """A thousand tasks that waited for children asked the database 2,000 times a second."""

    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        server = await cluster.server()
        cluster.worker(tools)
        first, *queue = [await cluster.start(limited(at_once=1)) for _ in range(21)]
        await gate.held(1)
        await until(lambda: [one.execution_id for one in server.server.owned] == [first])
        reads = Counted(server.storage.executions)
        server.storage.executions = reads  # type: ignore[misc]
        waiting = [asyncio.ensure_future(server.ended(name, 60.0)) for name in queue]
        await until(lambda: reads.made["unfinished"] >= 4)
        assert reads.made["find"] <= len(queue) + 2, "each looked once, when it began to wait"
        await server.order(queue[3], "cancel")
        assert await waiting[3]
        for _ in range(20):
            await gate.let_go((await gate.held(1))[-1])
        assert await asyncio.gather(*waiting) == [True] * 20

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-2")
def test_ends_under_a_limit_that_is_not_reached_ask_for_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each gave a place back and asked the database who waits for it: as often as it committed."""
    monkeypatch.setattr(keeping, "REST", 3600.0)

    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        server = await cluster.server()
        cluster.worker(tools)
        queue = [await cluster.start(limited(at_once=1)) for _ in range(3)]
        for name in queue:  # what was told to wait gets its place at once
            await gate.let_go((await gate.held(1))[-1])
            assert (await cluster.end_of(name)).status == "completed"
        limits = cast(Any, server.storage.limits)
        grant, asked = limits.grant, []

        async def counted() -> Any:
            asked.append(await grant())
            return asked[-1]

        limits.grant = counted
        for _ in range(20):
            name = await cluster.start(limited(at_once=1))
            await gate.let_go((await gate.held(1))[-1])
            assert (await cluster.end_of(name)).status == "completed"
        assert asked.count(None) <= 1, "looks that found nobody"

    clustered(test, tmp_path)
