"""LIMIT-3: a start under a limit that is not reached asks for nothing before its commit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_limit import limited, names
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered, until
from tests.support.scenario import Gate

from noetl.messages import events as e
from noetl.node.server import ServerNode
from noetl.ports.limits import LimitClaim

pytestmark = pytest.mark.rule("LIMIT-3")


def questions(server: ServerNode, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The executions whose place this server asks for from now on."""
    asked: list[str] = []
    limits: Any = server.storage.limits
    take = limits.take

    async def noted(claims: Sequence[LimitClaim]) -> list[int]:
        asked.extend(one.execution_id for one in claims)
        places: list[int] = await take(claims)
        return places

    monkeypatch.setattr(limits, "take", noted)
    return asked


async def gated(cluster: Cluster) -> tuple[ServerNode, Gate]:
    tools, gate = CannedTools(), Gate()
    tools.answers["work"] = [gate]
    server = await cluster.server()
    cluster.worker(tools)
    return server, gate


async def let_all_go(cluster: Cluster, gate: Gate, ids: Sequence[str], at_once: int) -> None:
    left = len(ids)
    while left:
        for key in await gate.held(min(at_once, left)):
            await gate.let_go(key)
            left -= 1
    for name in ids:
        assert (await cluster.end_of(name)).status == "completed"


def test_a_limit_that_is_not_reached_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(cluster: Cluster) -> None:
        server, gate = await gated(cluster)
        asked = questions(server, monkeypatch)
        text = limited(at_once=2)
        ids = [await cluster.start(text) for _ in range(2)]
        await gate.held(2)
        assert asked == []
        for name in ids:
            assert names(await cluster.events(name))[2] == "execution.admitted"
            assert [one.place for one in await server.storage.limits.places(name)] == [0]
        over = [await cluster.start(text) for _ in range(2)]
        assert set(asked) == set(over), "with the first that found no place all ask again"
        assert [(await server.row(name)).status for name in over] == ["queued", "queued"]
        queued = [
            one
            for name in over
            for one in await cluster.events(name)
            if isinstance(one, e.ExecutionQueued)
        ]
        assert [one.place for one in queued] == [1, 2]
        assert not [line for line in cluster.said if "loaded again" in line]
        await let_all_go(cluster, gate, [*ids, *over], 2)

    clustered(test, tmp_path)


def test_starts_in_a_time_are_asked_for_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(cluster: Cluster) -> None:
        server, gate = await gated(cluster)
        asked = questions(server, monkeypatch)
        name = await cluster.start(limited(per={"count": 5, "seconds": 60}))
        assert asked == [name]
        await let_all_go(cluster, gate, [name], 1)

    clustered(test, tmp_path)


def test_what_found_no_place_is_decided_once_it_has_one(tmp_path: Path) -> None:
    """Nothing of the first attempt is left: neither a run nor a claim (promise 1)."""

    async def test(cluster: Cluster) -> None:
        server, gate = await gated(cluster)
        text = limited(at_once=1)
        first = await cluster.start(text)
        second = await cluster.start(text)
        await until(lambda: server.server.find(second) is None)  # parked
        (key,) = await gate.held(1)
        assert first in key
        await gate.let_go(key)
        (key,) = await gate.held(1)
        assert second in key
        await gate.let_go(key)
        for name in (first, second):
            assert (await cluster.end_of(name)).status == "completed"
        kinds = names(await cluster.events(second))
        assert kinds[:3] == [
            "playbook.execution.requested",
            "playbook.request.evaluated",
            "execution.queued",
        ]
        assert kinds.count("execution.admitted") == 1
        assert await server.storage.limits.holding("tests/scenario", "", 9) == []

    clustered(test, tmp_path)
