"""What a step costs: chains, loops and many executions beside what the disk and JSON allow."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import apsw
import msgspec

from bench.figure import Figure
from bench.log import raw_commit, raw_file, raw_rows
from bench.playbooks import FIBONACCI, chain, loop
from bench.size import sized
from noetl.adapters.sqlite.database import CHECKPOINT_PAGES
from noetl.cli.running.attend import settle_garbage
from noetl.messages.events import Event, IterationDone, StepDone
from noetl.node.local import LocalNode
from noetl.server.active import ActiveExecution
from noetl.settings import Settings

REPEATS = sized(7, small=1)
STEPS = sized(200)
ITERATIONS = sized(20_000)
EXECUTIONS = sized(1000)
CHAINS = sized(40)
EVENTS = sized(20_000)
EVENT: dict[str, Any] = {
    "name": "task.done",
    "step": "fetch",
    "step_run_id": "12.0",
    "task_run_id": "12.1",
    "task": "fetch_page",
    "outcome": {
        "status": "ok",
        "result": {"rows": [1, 2, 3], "text": "x" * 90},
        "error": None,
        "meta": {"attempt": 1, "started_at": 1794779403894, "duration_ms": 3, "worker": "w1"},
    },
    "do": "continue",
    "set_ctx": {"total": 17, "note": "y" * 30},
}
"""About 400 bytes of JSON."""


def figures() -> list[Figure]:
    with TemporaryDirectory() as folder, quiet_collector():
        return asyncio.run(measure(Path(folder)))


@contextmanager
def quiet_collector() -> Iterator[None]:
    """As every process of NoETL sets it: what was loaded stays, and it looks seldom."""
    gc.collect()
    before = gc.get_threshold()
    settle_garbage()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


async def measure(folder: Path) -> list[Figure]:
    # A journal that still grows costs twice as much to sync as one that is written over: both sides
    # of a figure are in the same state, at first the one that every short run is in.
    raw, fresh = raw_file(folder / "raw.db"), raw_file(folder / "fresh.db", CHECKPOINT_PAGES)
    waits = await LocalNode.open(Settings(home=folder / "waits", run_ahead=False))
    ahead = await LocalNode.open(Settings(home=folder / "ahead"))
    found = [
        *await chains(fresh, waits, ahead),
        await sequential(raw, waits),
        *await in_groups(raw, ahead),
        await cpu(ahead),
        await fibonacci(raw, ahead),
    ]
    await waits.close()
    await ahead.close()
    raw.close()
    fresh.close()
    return found


async def run(local: LocalNode, text: str, payload: dict[str, Any] | None = None) -> float:
    """Seconds from the start to the committed end."""
    began = perf_counter()
    active = await local.run_text(text, folder=None, payload=payload or {})
    await active.finished
    assert active.execution.status == "completed", active.execution.error
    local.server.release(active.execution.execution_id)
    return perf_counter() - began


def steps_in(events: list[Event], what: type[Event] = StepDone) -> int:
    """How many steps a row ends: one that ran without a worker shares the row of its order."""
    return sum(type(event) is what for event in events)


def noting(
    ends: list[float], what: type[Event] = StepDone
) -> Callable[[ActiveExecution, list[Event]], None]:
    """Note the time of every end of a step, or of an iteration."""

    def note(_: ActiveExecution, events: list[Event]) -> None:
        ends.extend([perf_counter()] * steps_in(events, what))

    return note


def between(ends: list[float], steps: int) -> list[float]:
    """Seconds from each end to the next, where each step had a commit of its own."""
    assert len(ends) == steps == len(set(ends)), f"{len(set(ends))} rows ended {steps} steps"
    return [after - before for before, after in pairwise(ends)]


async def chains(raw: apsw.Connection, waits: LocalNode, ahead: LocalNode) -> list[Figure]:
    commits, steps, rate_waits, rate_ahead = [], [], [], []
    ends: list[float] = []
    waits.server.watchers.append(noting(ends))
    text = chain(STEPS)
    for _ in range(REPEATS):
        commits += [raw_commit(raw) for _ in range(STEPS)]
        ends.clear()
        rate_waits.append(STEPS / await run(waits, text))
        steps += between(ends, STEPS)
        rate_ahead.append(STEPS / await run(ahead, text))
    return [
        Figure.of("step, waiting for its commit / raw commit", steps, commits, 1.6, "s"),
        Figure.of("steps/s ahead / waiting", rate_ahead, rate_waits, 5, "/s", at_most=False),
    ]


async def sequential(raw: apsw.Connection, waits: LocalNode) -> Figure:
    text, numbers = loop("sequential"), list(range(STEPS))
    commits, turns = [], []
    raw_rows(raw)
    await run(waits, loop("parallel"), {"numbers": list(range(ITERATIONS))})
    ends: list[float] = []
    waits.server.watchers.append(noting(ends, IterationDone))
    for _ in range(REPEATS):
        commits += [raw_commit(raw) for _ in range(STEPS)]
        ends.clear()
        await run(waits, text, {"numbers": numbers})
        turns += between(ends, STEPS)
    return Figure.of("sequential iteration / raw commit", turns, commits, 1.4, "s")


async def in_groups(raw: apsw.Connection, ahead: LocalNode) -> list[Figure]:
    rows, iterations, steps = [], [], []
    text, numbers, five = loop("parallel"), list(range(ITERATIONS)), chain(5)
    for _ in range(REPEATS):
        rows.append(raw_rows(raw))
        iterations.append(ITERATIONS / await run(ahead, text, {"numbers": numbers}))
        began = perf_counter()
        await asyncio.gather(*(run(ahead, five) for _ in range(EXECUTIONS)))
        steps.append(EXECUTIONS * 5 / (perf_counter() - began))
    return [
        Figure.of("parallel iterations / raw rows", iterations, rows, 0.1, "/s", at_most=False),
        Figure.of("1000 executions x 5 steps / rows", steps, rows, 0.08, "/s", at_most=False),
    ]


async def cpu(ahead: LocalNode) -> Figure:
    text = chain(50)
    steps, codec = [], []
    for _ in range(REPEATS):
        began = process_time()
        for _ in range(CHAINS):
            await run(ahead, text)
        steps.append((process_time() - began) / (50 * CHAINS))
        began = process_time()
        for _ in range(EVENTS):
            msgspec.json.decode(msgspec.json.encode(EVENT))
        codec.append((process_time() - began) / EVENTS)
    return Figure.of("CPU of a noop step / event codec", steps, codec, 8, "s")


async def fibonacci(raw: apsw.Connection, ahead: LocalNode) -> Figure:
    """40 sequential python tasks in an isolated child whose start is not counted."""
    commits, tasks = [], []
    text = chain(41, FIBONACCI)
    ends: list[float] = []
    ahead.server.watchers.append(noting(ends))
    for _ in range(REPEATS):
        commits.append(sum(raw_commit(raw) for _ in range(40)))
        ends.clear()
        await run(ahead, text)
        tasks.append(sum(between(ends, 41)))
    return Figure.of("40 python tasks / 40 raw commits", tasks, commits, 6, "s")
