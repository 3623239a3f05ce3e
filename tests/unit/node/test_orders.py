"""An order that was taken is obeyed, whatever befalls the execution while it is written down."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_limit_embedded import House, housed
from tests.support.canned import CannedTools, Silence
from tests.support.cluster import PATIENCE, Cluster, clustered, is_claimed, until
from tests.support.steps import call, playbook, step
from tests.support.waiting import waits

from noetl.control.decide import decide_next
from noetl.control.waits_held import pending
from noetl.errors import ServerRefused
from noetl.messages import events as e
from noetl.messages.requests import AnyOrder, SendSignal
from noetl.node import orders
from noetl.node.control_plane import ControlPlane
from noetl.pipeline.frame import TaskWait
from noetl.server import server as server_module

ONE = playbook(step("first", call("fetch")))


def fails_to_decide(patch: pytest.MonkeyPatch, _: Cluster, __: str) -> None:
    """A fault of our own, once."""
    real = decide_next

    def broken(*_: Any, **__: Any) -> Any:
        patch.setattr(server_module, "decide_next", real)
        raise KeyError("a hole in the plan")

    patch.setattr(server_module, "decide_next", broken)


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


WAITS = playbook(step("start", waits("hear", signal="go")))


async def waiting(plane: ControlPlane, execution_id: str) -> None:
    """Returns when the log has the wait."""
    await until(lambda: any(pending_in(plane, execution_id)))
    active = plane.server.find(execution_id)
    assert active is not None
    await active.settled()


def pending_in(plane: ControlPlane, execution_id: str) -> list[TaskWait]:
    active = plane.server.find(execution_id)
    return [] if active is None else list(pending(active.execution))


@pytest.mark.rule("WAIT-4")
def test_a_signal_that_comes_too_late_for_its_owner_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was left for the server that decides, which ended the execution before it looked."""

    async def test(cluster: Cluster) -> None:
        owner, other = await cluster.server(), await cluster.server()
        cluster.worker(CannedTools())
        execution_id = await cluster.start(WAITS)
        await waiting(owner, execution_id)
        leave = other.ownership.leave

        async def late(left: str, given: AnyOrder) -> None:
            await owner.signal(execution_id, SendSignal(signal="go", sender="first"))
            await cluster.end_of(execution_id)
            await leave(left, given)

        monkeypatch.setattr(other.ownership, "leave", late)
        with pytest.raises(ServerRefused, match=r"completed at .*: there is nothing to signal"):
            await other.signal(execution_id, SendSignal(signal="go", sender="second"))

    clustered(test, tmp_path)


@pytest.mark.rule("WAIT-4", "WAIT-5")
@pytest.mark.parametrize("asked", ["signal", "approval"])
def test_what_nobody_decides_is_not_waited_for(
    asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted run is answered at once: `noetl resume` carries it out."""
    monkeypatch.setattr(orders, "PATIENCE", 10 * PATIENCE)

    async def test(house: House) -> None:
        first = await house.node()
        inputs: dict[str, Any] = {asked: "go"}
        text = playbook(step("start", waits("w", **inputs)))
        active = await first.run_text(text, folder=None, payload={})
        execution_id = active.execution_id
        await waiting(first, execution_id)
        house.nodes.remove(first)
        await first.close()
        second = await house.node()
        async with asyncio.timeout(PATIENCE):
            if asked == "signal":
                await second.signal(execution_id, SendSignal(signal="go"))
            else:
                await second.answer(execution_id, None, approved=True, sender="x")
        assert (await second.row(execution_id)).status == "running", "it waits for `noetl resume`"

    housed(test, tmp_path, None)
