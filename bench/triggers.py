"""What waiting schedules cost a server that has nothing to do, and what due ones cost others."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import apsw
from msgspec.structs import astuple, replace

from bench.figure import Figure
from bench.playbooks import chain
from bench.size import sized
from bench.sizing import at_work
from noetl.adapters.sqlite.database import write
from noetl.node.server import ServerNode
from noetl.ports.triggers import TriggerRow
from noetl.server.triggering import now_ms
from noetl.settings import Settings

WAITING = sized(100_000)
DUE = sized(2_000)
LOOKED = sized(5, small=1)
"""Seconds for which an idle server is watched, each time."""
REPEATS = sized(3, small=1)
BESIDE = sized(200)
TRIGGER = """\
apiVersion: noetl.io/v2
kind: Trigger
metadata: {{ name: due, path: {path} }}
spec:
  playbook: {playbook}
  on: {{ schedule: {{ every: 86400 }} }}
"""


def figures() -> Iterator[Figure]:
    idle = [asyncio.run(share(WAITING)) for _ in range(REPEATS)]
    yield Figure.of("idle server, 100,000 schedules / a core", idle, [1000.0], 0.02, "ms/s")
    usual, late, rate = zip(*(asyncio.run(latencies()) for _ in range(REPEATS)), strict=True)
    yield Figure.of("p95 of others while 2,000 fire / without", [*late], [*usual], 2.0, "ms")
    yield Figure.of("schedules that fire beside them / 1 s", [*rate], [1.0], 200, "/s", False)


async def share(count: int) -> float:
    """Milliseconds of a core that a server with so many schedules takes in a second."""
    with TemporaryDirectory() as folder:
        plane = await ServerNode.open(Settings(home=Path(folder)), says=lambda _: None)
        later = now_ms() + 86_400_000
        await fill(plane, count, planned_at=later, due_at=later)
        await asyncio.sleep(1)
        begun, took = perf_counter(), process_time()
        await asyncio.sleep(LOOKED)
        took, passed = process_time() - took, perf_counter() - begun
        await plane.close()
    return 1000 * took / passed


async def latencies() -> tuple[float, float, float]:
    """p95 of single steps, alone and while schedules fire; how many of these do in a second."""
    with TemporaryDirectory() as folder:
        plane = await ServerNode.open(Settings(home=Path(folder)), says=lambda _: None)
        entry, _ = await plane.register(chain(1))
        text = TRIGGER.format(path="due", playbook=entry.path)
        await plane.register(text)
        async with at_work(plane):
            for _ in range(BESIDE):  # the first ones pay for what is imported and opened
                await one(plane, entry.path)
            without = [await one(plane, entry.path) for _ in range(5 * BESIDE)]
            plane.starts.watching = 0  # nothing counts as missed
            now = now_ms()
            (found,) = await plane.storage.triggers.page(limit=1)
            document = await plane.starts.trigger(found)
            for number in range(DUE):
                plane.starts._known[f"t{number}", 1] = replace(document, path=f"t{number}")
            await fill(plane, DUE, planned_at=now - now % 86_400_000, due_at=now)
            (watch,) = (one for one in plane._tasks if one.get_name() == "TriggerStarts.watch")
            watch.cancel()  # a server looks once at a time
            beside, begun = [], perf_counter()
            firing = asyncio.create_task(plane.starts.look())
            while not firing.done():
                beside.append(await one(plane, entry.path))
            rate = DUE / (perf_counter() - begun)
        await plane.close()
    return percentile(without), percentile(beside), rate


async def one(plane: ServerNode, path: str) -> float:
    begun = perf_counter()
    row = await plane.execute(path=path, payload={})
    await plane.ended(row.execution_id, 60.0)
    return 1000 * (perf_counter() - begun)


async def fill(plane: ServerNode, count: int, **times: Any) -> None:
    storage: Any = plane.storage
    rows = [
        TriggerRow(path=f"t{number}", kind="schedule", version=1, **times)
        for number in range(count)
    ]

    def put(connection: apsw.Connection) -> None:
        for row in rows:
            write(connection, "put_trigger", astuple(row))

    await storage.writer.transact(put)


def percentile(measured: list[float]) -> float:
    return sorted(measured)[int(len(measured) * 0.95)]
