"""Triggers written in Python, and a clock that is moved by hand."""

import asyncio
import json
import time
from typing import Any

from msgspec.structs import replace
from tests.support.cluster import PATIENCE, PAUSE, Cluster
from tests.support.steps import noop, playbook, step

from noetl.node.server import ServerNode
from noetl.ports.event_log import ExecutionRow
from noetl.ports.triggers import TriggerRow

PATH = "tests/nightly"
NOW = 1_774_000_000_000
"""2026-03-20T09:46:40Z: somewhere in the middle of an hour."""


def trigger(on: dict[str, Any], *, path: str = PATH, **spec: Any) -> str:
    """The text of a trigger of the playbook of the tests."""
    head = {"apiVersion": "noetl.io/v2", "kind": "Trigger"}
    about = {"name": path.rpartition("/")[2], "path": path}
    spec = {"playbook": "tests/scenario", "on": on, **spec}
    return json.dumps({**head, "metadata": about, "spec": spec}, indent=1)


def scheduled(cron: str | None = None, *, path: str = PATH, **schedule: Any) -> str:
    on = {"cron": cron, **schedule} if cron is not None else schedule
    return trigger({"schedule": on}, path=path)


QUICK = playbook(step("one", noop("t")))


class Clock:
    """The time as servers see it."""

    def __init__(self, now: int = NOW) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += int(seconds * 1000)


class Timed:
    """A cluster whose servers look for what is due by a clock of the test's own, when told."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.clock = Clock()

    async def server(self) -> ServerNode:
        server = await self.cluster.server()
        (watch,) = (one for one in server._tasks if one.get_name() == "TriggerStarts.watch")
        watch.cancel()  # it looks when the test says so
        server.starts.now = self.clock
        server.starts.watching = server.starts._looked = self.clock.now
        return server

    async def planned(self, server: ServerNode, at: int, *, path: str = PATH) -> TriggerRow:
        """The trigger as if it had been registered before this planned time."""
        row = await self.row(path)
        made = replace(row, planned_at=at, due_at=at, since=0)
        await server.storage.triggers.put(made)
        return made

    async def row(self, path: str = PATH) -> TriggerRow:
        row = await self.cluster.root.triggers.find(path)
        assert row is not None
        return row

    async def started(self, count: int = 0) -> list[ExecutionRow]:
        """All executions, once there are so many, the oldest first."""
        async with asyncio.timeout(PATIENCE):
            while True:
                rows = await self.cluster.root.executions.page(limit=10_000)
                if len(rows) >= count:
                    return list(rows)[::-1]
                await asyncio.to_thread(time.sleep, PAUSE)
