"""A long life: one execution of a million events, its last steps and its recovery."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

from bench.engine import quiet_collector, run
from bench.figure import Figure
from bench.playbooks import turns
from noetl.messages.events import Event
from noetl.node.local import LocalNode
from noetl.server.active import SNAPSHOT_AFTER, ActiveExecution
from noetl.server.replay import replay
from noetl.settings import Settings

TURNS = 91_000
"""Eleven events each: about a million."""
SHORT = 900
"""About ten thousand events."""
REPEATS = 5


def figures() -> list[Figure]:
    with TemporaryDirectory() as folder, quiet_collector():
        return asyncio.run(measure(Path(folder)))


async def measure(folder: Path) -> list[Figure]:
    local = await LocalNode.open(Settings(home=folder))
    marks: list[float] = []
    decisions = 0

    def mark(_: ActiveExecution, __: list[Event]) -> None:
        nonlocal decisions
        decisions += 1
        if decisions % (TURNS // 10) == 0:
            marks.append(process_time())

    local.server.watch(mark)
    began = process_time()
    await run(local, turns(TURNS))
    steps = TURNS // 10
    found = Figure.of(
        "CPU of a step, last tenth / first",
        [(marks[9] - marks[8]) / steps],
        [(marks[0] - began) / steps],
        1.3,
        "s",
    )
    return [found, await recovery(local)]


async def recovery(local: LocalNode) -> Figure:
    """Reading the state back, at the longest tail that a snapshot leaves."""
    # The first decision starts the execution; a tail of SNAPSHOT_AFTER is cut by a snapshot.
    long = await left_at(local, turns(TURNS), SNAPSHOT_AFTER * (TURNS // SNAPSHOT_AFTER) - 1)
    short = await left_at(local, turns(TURNS + 1), SHORT)
    ours, reference = [], []
    for _ in range(REPEATS):
        ours.append(await read_back(local, long))
        reference.append(await read_back(local, short))
    return Figure.of("recovery of 1,000,000 events / 10,000", ours, reference, 2, "s")


async def left_at(local: LocalNode, text: str, decisions: int) -> str:
    """An execution that was left after so many decisions, as a crash would leave it."""
    active = await local.run_text(text, folder=None, payload={})
    count = 1
    reached = asyncio.get_running_loop().create_future()

    def watch(seen: ActiveExecution, _: list[Event]) -> None:
        nonlocal count
        if seen is active and not reached.done():
            count += 1
            if count == decisions:
                local.server.release(active.execution.execution_id)
                reached.set_result(None)

    local.server.watch(watch)
    await reached
    while active.uncommitted:
        await asyncio.sleep(0)
    return active.execution.execution_id


async def read_back(local: LocalNode, execution_id: str) -> float:
    plan = (await local.load(execution_id))[1]
    began = perf_counter()
    await replay(local.storage.log, execution_id, plan)
    return perf_counter() - began
