"""SRV-1: many executions are started with one request."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered
from tests.support.steps import noop, playbook, step

from noetl.api.context import ApiContext
from noetl.api.executions import ExecutionsRoutes
from noetl.api.types import BatchRequest, ExecutionBatch, KeyedRequest


@pytest.mark.rule("SRV-1")
def test_one_request_starts_many_and_a_refused_one_stops_none(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        cluster.worker(CannedTools())
        entry, _ = await server.register(playbook(step("one", noop("t"))))
        desk = ExecutionsRoutes(ApiContext(server))
        wanted = [KeyedRequest(path=entry.path, key=f"k{n % 20}") for n in range(40)]
        wanted.insert(7, KeyedRequest(path="no/such"))
        wanted.insert(9, KeyedRequest(path=entry.path, playbook_id=entry.playbook_id))
        nobody: Any = SimpleNamespace(scope={})
        answer = await desk.start_many(nobody, data=BatchRequest(executions=wanted))
        begun = msgspec.json.decode(cast(bytes, answer.content), type=ExecutionBatch).executions
        assert [n for n, one in enumerate(begun) if one.execution is None] == [7, 9]
        assert begun[7].error is not None
        assert begun[7].error.code == "playbook_not_found"
        ids = {one.execution.execution_id for one in begun if one.execution is not None}
        assert len(ids) == 20, "one key starts one execution"
        ended = await asyncio.gather(*(cluster.end_of(name) for name in ids))
        assert {execution.status for execution in ended} == {"completed"}

    clustered(test, tmp_path)
