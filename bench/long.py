"""A long life: one execution of a million events, its last steps and its recovery."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

from bench.engine import quiet_collector, run, steps_in
from bench.figure import Figure
from bench.playbooks import turns
from bench.size import sized
from noetl.messages.events import Event
from noetl.node.local import LocalNode
from noetl.server.active import ActiveExecution
from noetl.server.replay import replay
from noetl.settings import Settings

TURNS = sized(91_000)
"""Eleven events each: about a million."""
SHORT = sized(10_000)
"""Events of the short execution."""
REPEATS = sized(5, small=1)


def figures() -> list[Figure]:
    with TemporaryDirectory() as folder, quiet_collector():
        return asyncio.run(measure(Path(folder)))


async def measure(folder: Path) -> list[Figure]:
    local = await LocalNode.open(Settings(home=folder))
    life = Life()
    local.server.watchers.append(life.note)
    await run(local, turns(TURNS))
    (first, began), (tenth, early) = life.marks[:2]
    (ninth, late), (last, ended) = life.marks[-2:]
    found = Figure.of(
        "CPU of a step, last tenth / first",
        [(ended - late) / (last - ninth)],
        [(early - began) / (tenth - first)],
        1.3,
        "s",
    )
    recovered = await recovery(local, life)
    await local.close()
    return [found, recovered]


class Life:
    """
    What one execution went through. A row may hold the runs of several steps, so rows say nothing
    about how far it has come: steps are counted, and snapshots are seen by the tail they cut.
    """

    def __init__(self) -> None:
        self.marks = [(0, process_time())]
        """Steps that were done, and the CPU until then: at the start, and after each tenth."""
        self.peak = (0, 0)
        """Events and tail just before the last snapshot; without one, at the end."""
        self._steps = 0
        self._before = (0, 0)
        self._cut = False

    def note(self, active: ActiveExecution, events: list[Event]) -> None:
        self._steps += steps_in(events)
        if self._steps * 10 >= TURNS * len(self.marks):
            self.marks.append((self._steps, process_time()))
        now = (active.execution.seq, active.tail)
        if now[1] < self._before[1]:
            self.peak, self._cut = self._before, True
        elif not self._cut:
            self.peak = now
        self._before = now


async def recovery(local: LocalNode, life: Life) -> Figure:
    """Reading the state back, near the longest tail that a snapshot leaves."""
    events, tail = life.peak

    def late(active: ActiveExecution) -> bool:
        return active.execution.seq >= 0.9 * events and active.tail >= 0.9 * tail

    long = await left(local, turns(TURNS), late)
    # Another text: the plans of both are kept, and neither is read for the other.
    short = await left(local, turns(TURNS + 1), lambda active: active.execution.seq >= SHORT)
    ours, reference = [], []
    for _ in range(REPEATS):
        ours.append(await read_back(local, long))
        reference.append(await read_back(local, short))
    return Figure.of("recovery of 1,000,000 events / 10,000", ours, reference, 2, "s")


async def left(local: LocalNode, text: str, when: Callable[[ActiveExecution], bool]) -> str:
    """An execution that was left at some point of its life, as a crash would leave it."""
    active = await local.run_text(text, folder=None, payload={})
    reached = asyncio.get_running_loop().create_future()

    def watch(seen: ActiveExecution, _: list[Event]) -> None:
        if seen is active and not reached.done() and when(active):
            local.server.release(active.execution.execution_id)
            reached.set_result(None)

    local.server.watchers.append(watch)
    await asyncio.wait([reached, active.finished], return_when=asyncio.FIRST_COMPLETED)
    assert reached.done(), "it ended before it could be left"
    while active.uncommitted:
        await asyncio.sleep(0)
    return active.execution.execution_id


async def read_back(local: LocalNode, execution_id: str) -> float:
    plan = (await local.state(execution_id))[1]
    began = perf_counter()
    await replay(local.storage.log, execution_id, plan)
    return perf_counter() - began
