"""Servers and workers in one process, on a home in memory, with a wire that can be cut."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from tests.support.direct_link import DirectLink, Exchange
from tests.support.proofs import verify_all

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.memory.storage import MemoryStorage
from noetl.control.execution import Execution
from noetl.messages.codec import decode_events
from noetl.messages.events import Event
from noetl.node.server import ServerNode
from noetl.node.work_plane import WorkPlane
from noetl.ports.link import Link
from noetl.ports.result_store import ResultStore
from noetl.server.replay import rows_of
from noetl.settings import Settings
from noetl.tools.table import Toolbox

OFTEN = 300
"""How often a fact is asked for in each turn of the loop; after that, less often."""
PAUSE = 0.002
"""Seconds between two such questions, outside the loop: its time may be a simulated one."""
PATIENCE = 600.0
"""Seconds before a test that hangs fails; never a time that is expected to pass."""


async def until(fact: Any) -> None:
    """Wait for a fact, not for a time; whoever asks all the time lets threads have their turn."""
    async with asyncio.timeout(PATIENCE):
        for asked in count():
            if fact():
                return
            await (asyncio.sleep(0) if asked < OFTEN else asyncio.to_thread(time.sleep, PAUSE))


async def turns(count: int = 200) -> None:
    """Let everybody have so many turns: what can happen without time has happened then."""
    for _ in range(count):
        await asyncio.sleep(0)


def is_claimed(server: ServerNode, execution_id: str) -> bool:
    """Whether the log knows of a worker that has a part of the execution."""
    active = server.server.find(execution_id)
    runs = [] if active is None else active.execution.runs.values()
    return any(part.worker for run in runs for part in run.parts.values())


class Cluster:
    """Grow it with `server` and `worker`; take members away with `kill`."""

    def __init__(self, home: Path, *, ttl: float = 10.0, poll: float = 0.05) -> None:
        self.settings = Settings(home=home, lease_ttl=ttl)
        self.exchange = Exchange()
        self.root = MemoryStorage()
        self.results = ResultStore(MemoryObjectStore())
        self.servers: list[ServerNode] = []
        self.workers: list[WorkPlane] = []
        self.said: list[str] = []
        self._poll = poll
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._count = 0

    async def server(self) -> ServerNode:
        self._count += 1
        home = self.root.beside(f"server-{self._count}")
        plane = ServerNode(self.settings, home, results=self.results, says=self.said.append)
        await plane.serve()
        plane.dispatcher.notifiers.append(self.exchange.attach(plane.dispatcher))
        self.servers.append(plane)
        return plane

    def worker(
        self, tools: Toolbox, *, link: Link | None = None, token: str | None = None
    ) -> WorkPlane:
        self._count += 1
        wire = link or DirectLink(self.exchange, poll=self._poll, patience=2.0)
        plane = WorkPlane(
            replace(self.settings, token=token),
            wire,
            results=self.results,
            tools=tools,
            says=self.said.append,
            name=f"worker-{self._count}",
        )
        self.workers.append(plane)
        self._tasks[plane.name] = asyncio.get_running_loop().create_task(plane.run())
        return plane

    # ── ends ─────────────────────────────────────────────────────────────────────────────────

    async def kill_worker(self, plane: WorkPlane) -> None:
        """As a machine that loses its power: nothing is said, nothing given back."""
        self.workers.remove(plane)
        wire = plane.session.wire
        wire.link = wire.questions.link = Cut()
        self._tasks.pop(plane.name).cancel()
        for work in plane.worker._work.values():
            work.stopped = work.lost = True
        plane.worker.stopping = True
        for task in list(plane.worker._work):
            task.cancel()

    async def kill_server(self, plane: ServerNode) -> None:
        self.servers.remove(plane)
        self.exchange.detach(plane.name)
        for task in plane._tasks:
            task.cancel()
        plane.storage.die()  # type: ignore[attr-defined]
        for active in plane.server.owned:
            plane.server.release(active.execution.execution_id)

    async def close(self) -> None:
        for worker in self.workers:
            await worker.drain(0.0)
            self._tasks[worker.name].cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._tasks[worker.name]
            await worker.close()
        for server in self.servers:
            await server.close()
        root = self.root
        found = await verify_all(root.log, root.playbooks, self.results, root.executions)
        assert [one.message for one in found.values() if not one.ok] == []

    # ── running ──────────────────────────────────────────────────────────────────────────────

    async def run(self, text: str, payload: dict[str, Any] | None = None) -> Execution:
        execution_id = await self.start(text, payload)
        return await self.end_of(execution_id)

    async def start(self, text: str, payload: dict[str, Any] | None = None) -> str:
        entry, _ = await self.servers[0].register(text)
        row = await self.servers[0].execute(playbook_id=entry.playbook_id, payload=payload or {})
        return row.execution_id

    async def end_of(self, execution_id: str) -> Execution:
        async with asyncio.timeout(PATIENCE):
            while not self.servers or not await self.servers[0].ended(execution_id, 1.0):
                await asyncio.sleep(0)
        execution, _ = await self.servers[0].state(execution_id)
        return execution

    async def events(self, execution_id: str) -> list[Event]:
        return [
            event
            async for row in rows_of(self.root.log, execution_id)
            for event in decode_events(row.events)
        ]


class Cut:
    """A line that leads nowhere."""

    async def call(self, *_: Any) -> Any:
        await asyncio.get_running_loop().create_future()

    ask = call

    async def wake(self, *_: Any, **__: Any) -> Any:
        await asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        """It is."""


def clustered(test: Callable[..., Awaitable[None]], home: Path, **options: Any) -> None:
    """Run a test on a cluster, which is closed whatever happens."""

    async def run() -> None:
        cluster = Cluster(home, **options)
        try:
            await test(cluster)
        finally:
            await cluster.close()

    asyncio.run(run())
