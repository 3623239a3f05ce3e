"""A server that stops: whoever waits is told, and its home is its own to the last word."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.canned import CannedTools, Silence
from tests.support.cluster import Cluster, clustered, turns, until
from tests.support.steps import call, playbook, step

from noetl.errors import HomeInUse
from noetl.node.opening import lock_home
from noetl.node.server import ServerNode
from noetl.settings import Settings

ONE = playbook(step("first", call("fetch")))


def test_whoever_waits_for_an_end_is_let_go(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        tools.answers["fetch"] = [Silence()]
        server = await cluster.server()
        cluster.worker(tools)
        execution_id = await cluster.start(ONE)
        await until(lambda: tools.calls)
        waiting = asyncio.ensure_future(server.ended(execution_id, 3600.0))
        await turns(5)
        server.closing.set()
        await turns()
        assert waiting.done()
        assert waiting.result() is False
        await server.order(execution_id, "cancel")
        await cluster.end_of(execution_id)

    clustered(test, tmp_path)


async def test_the_home_is_locked_until_everything_is_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(home=tmp_path)
    node = await ServerNode.open(settings, says=lambda _: None)
    hand_over = node.ownership.hand_over
    tried: list[Any] = []

    async def another_comes() -> None:
        with pytest.raises(HomeInUse):
            lock_home(settings)
        await hand_over()
        tried.append(True)

    monkeypatch.setattr(node.ownership, "hand_over", another_comes)
    await node.close()
    assert tried
    again = lock_home(settings)
    assert again is not None
    os.close(again)
