"""A start that a fault of ours ends before it is recorded is never told as one (promise 1)."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered
from tests.support.steps import noop, playbook, step

from noetl.errors import NoetlError


def test_a_start_that_cannot_be_decided_is_no_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        cluster.worker(CannedTools())
        text = playbook(step("start", noop("work")))

        def fault(active: Any, *_: Any) -> Any:
            active.execution.seq = 3  # it was half decided
            raise ZeroDivisionError("a fault of ours")

        with monkeypatch.context() as broken:
            broken.setattr(server.server, "_decided", fault)
            with pytest.raises(NoetlError, match="ZeroDivisionError"):
                await cluster.start(text)
        assert await server.storage.executions.page() == []
        assert (await cluster.run(text)).status == "completed"

    clustered(test, tmp_path)
