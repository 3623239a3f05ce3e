"""One stage for waits: an execution in this process, or at a server with a worker elsewhere."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.support.canned import CannedTools
from tests.support.cluster import PATIENCE, Cluster, until
from tests.support.proofs import verify_all
from tests.support.steps import Tree, task

from noetl.control.execution import Execution
from noetl.control.waits_held import pending
from noetl.messages import events as e
from noetl.messages.codec import decode_events
from noetl.messages.requests import SendSignal
from noetl.node.control_plane import ControlPlane
from noetl.node.local import LocalNode
from noetl.pipeline.frame import TaskWait
from noetl.server.replay import rows_of
from noetl.server.waiting import WaitReason, waits_of
from noetl.settings import Settings
from noetl.worker.worker import Worker

STAGES = ("embedded", "distributed")
ASKED = (*STAGES, "another server")
"""Where orders are given: of the last, the server that is asked does not own the execution."""


def waits(label: str, *rules: Tree, timeout: float | None = None, **inputs: Any) -> Tree:
    """A task of kind wait; its `timeout` is an input."""
    late = {} if timeout is None else {"timeout": timeout}
    tree = task(label, "wait", *rules, **inputs)
    tree[label].update(late)
    return tree


class Stage:
    """What both have in common: start, signal, answer, look."""

    def __init__(
        self,
        plane: ControlPlane,
        tools: CannedTools,
        begin: Any,
        worker: Worker,
        owner: ControlPlane | None = None,
    ) -> None:
        self.plane, self.tools, self._begin, self.worker = plane, tools, begin, worker
        self.owner = owner or plane

    async def start(self, text: str, payload: dict[str, Any] | None = None) -> str:
        execution_id: str = await self._begin(text, payload or {})
        return execution_id

    def execution(self, execution_id: str) -> Execution:
        active = self.owner.server.find(execution_id)
        assert active is not None, "it has not ended"
        return active.execution

    def waiting(self, execution_id: str) -> list[TaskWait]:
        active = self.owner.server.find(execution_id)
        return [] if active is None else list(pending(active.execution))

    async def waits(self, execution_id: str, count: int = 1) -> list[TaskWait]:
        """Returns when so many tasks wait, and nobody holds any of them."""
        await until(lambda: len(self.waiting(execution_id)) == count and self.idle(execution_id))
        return self.waiting(execution_id)

    def idle(self, execution_id: str) -> bool:
        return not any(run.parts for run in self.execution(execution_id).runs.values())

    async def signal(self, execution_id: str, name: str, data: Any = None, **more: Any) -> None:
        given = SendSignal(signal=name, data=data, sender="test", **more)
        await self.plane.signal(execution_id, given)

    async def reasons(self, execution_id: str) -> list[WaitReason]:
        return waits_of(*await self.plane.state(execution_id))

    async def ended(self, execution_id: str) -> Execution:
        async with asyncio.timeout(PATIENCE):
            while not await self.plane.ended(execution_id, 1.0):
                await asyncio.sleep(0)
        return (await self.plane.state(execution_id))[0]

    async def events(self, execution_id: str) -> list[e.Event]:
        return [
            event
            async for row in rows_of(self.plane.storage.log, execution_id)
            for event in decode_events(row.events)
        ]

    async def of(self, execution_id: str, *kinds: type[e.Event]) -> list[Any]:
        return [one for one in await self.events(execution_id) if isinstance(one, kinds)]


Test = Callable[[Stage], Awaitable[None]]


def staged(test: Test, where: str, home: Path) -> None:
    """Run a test where it is asked for; every log that it made is verified."""
    if where == "embedded":
        asyncio.run(embedded(test, home))
    else:
        asyncio.run(distributed(test, home, elsewhere=where == "another server"))


async def embedded(test: Test, home: Path) -> None:
    tools = CannedTools()
    local = LocalNode.in_memory(Settings(home=home), tools)

    async def begin(text: str, payload: dict[str, Any]) -> str:
        active = await local.run_text(text, folder=None, payload=payload)
        return active.execution_id

    try:
        await test(Stage(local, tools, begin, local.worker))
        storage = local.storage
        found = await verify_all(storage.log, storage.playbooks, local.results, storage.executions)
        assert [one.message for one in found.values() if not one.ok] == []
    finally:
        await local.close()


async def distributed(test: Test, home: Path, *, elsewhere: bool = False) -> None:
    cluster = Cluster(home)
    tools = CannedTools()
    try:
        server = await cluster.server()
        worker = cluster.worker(tools).worker
        asked = await cluster.server() if elsewhere else server
        await test(Stage(asked, tools, cluster.start, worker, server))
    finally:
        await cluster.close()
