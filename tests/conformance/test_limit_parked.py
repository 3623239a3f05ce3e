"""LIMIT: a queue is kept in the home, and in no server's memory."""

from pathlib import Path

import pytest
from tests.conformance.test_limit import limited, names, waits
from tests.conformance.test_start_subjects import until_true
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered, until
from tests.support.scenario import Gate

from noetl.api.questions import PlaneQuestions
from noetl.messages import requests as r


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
