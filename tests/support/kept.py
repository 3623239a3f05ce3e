"""A playbook run again and again on one home, in one process or by servers and workers."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster
from tests.support.proofs import verify_all

from noetl.control.execution import Execution
from noetl.messages.codec import decode_events
from noetl.messages.events import Event
from noetl.node.control_plane import ControlPlane
from noetl.node.local import LocalNode
from noetl.server.replay import rows_of
from noetl.settings import Settings


class Runs(Protocol):
    """One home."""

    tools: CannedTools
    plane: ControlPlane

    async def run(self, text: str, **payload: Any) -> Execution: ...


class LocalRuns:
    """Everything in one process (`noetl run`)."""

    def __init__(self, home: Path) -> None:
        self.tools = CannedTools()
        self.plane = LocalNode.in_memory(Settings(home=home), self.tools)

    async def run(self, text: str, **payload: Any) -> Execution:
        active = await self.plane.run_text(text, folder=None, payload=payload)
        await active.finished
        await self.plane.cache.close()
        return active.execution

    async def close(self) -> None:
        plane = self.plane
        storage = plane.storage
        await plane.close()
        found = await verify_all(storage.log, storage.playbooks, plane.results, storage.executions)
        assert [one.message for one in found.values() if not one.ok] == []


class ClusterRuns:
    """Two servers and two workers, with what carries messages between them."""

    def __init__(self, home: Path) -> None:
        self.tools = CannedTools()
        self.cluster = Cluster(home)

    async def open(self) -> None:
        self.plane = await self.cluster.server()
        await self.cluster.server()
        self.cluster.worker(self.tools)
        self.cluster.worker(self.tools)

    async def run(self, text: str, **payload: Any) -> Execution:
        execution = await self.cluster.run(text, payload)
        for server in self.cluster.servers:
            await server.cache.close()
        return execution

    async def close(self) -> None:
        await self.cluster.close()


Test = Callable[[Runs], Awaitable[None]]
both = pytest.mark.parametrize("where", ["embedded", "distributed"])


def kept(test: Test, home: Path, where: str) -> None:
    async def run() -> None:
        runs: Any = LocalRuns(home) if where == "embedded" else ClusterRuns(home)
        if where == "distributed":
            await runs.open()
        try:
            await test(runs)
        finally:
            await runs.close()

    asyncio.run(run())


async def events_of(runs: Runs, execution: Execution) -> list[Event]:
    log = runs.plane.storage.log
    return [
        event
        async for row in rows_of(log, execution.execution_id)
        for event in decode_events(row.events)
    ]
