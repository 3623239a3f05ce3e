"""An order that was taken is obeyed, whatever befalls the execution while it is written down."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.canned import CannedTools, Silence
from tests.support.cluster import Cluster, clustered, is_claimed, until
from tests.support.steps import call, playbook, step

from noetl.control.decide import decide
from noetl.messages import events as e
from noetl.server import server as server_module

ONE = playbook(step("first", call("fetch")))


def fails_to_decide(patch: pytest.MonkeyPatch, _: Cluster, __: str) -> None:
    """A fault of our own, once."""
    real = decide

    def broken(*_: Any, **__: Any) -> Any:
        patch.setattr(server_module, "decide", real)
        raise KeyError("a hole in the plan")

    patch.setattr(server_module, "decide", broken)


def is_overtaken(_: pytest.MonkeyPatch, cluster: Cluster, execution_id: str) -> None:
    """The log refuses what is decided on a state that it does not have."""
    server = cluster.servers[0]
    active = server.server.find(execution_id)
    assert active is not None
    active.execution.seq += 1


FAULTS = {"a fault of our own": fails_to_decide, "a refused commit": is_overtaken}


@pytest.mark.rule("SRV-3", "NEXT-8")
@pytest.mark.parametrize("kind", ["cancel", "pause"])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_an_order_outlives_a_fault_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, fault: Any
) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        tools.answers["fetch"] = [Silence()]
        server = await cluster.server()
        cluster.worker(tools)
        execution_id = await cluster.start(ONE)
        await until(lambda: tools.calls)
        await until(lambda: is_claimed(server, execution_id))
        fault(monkeypatch, cluster, execution_id)
        await server.order(execution_id, kind, "enough")
        waited = {"cancel": "cancelled", "pause": "paused"}[kind]
        await until(lambda: cluster.root.tables.rows[execution_id].status == waited)
        orders = [
            event
            for event in await cluster.events(execution_id)
            if isinstance(event, e.ExecutionCancelled | e.ExecutionPaused)
        ]
        assert [event.reason for event in orders] == ["enough"]

    clustered(test, tmp_path)
