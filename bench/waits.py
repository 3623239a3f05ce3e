"""What thousands of waits cost those that do not wait: entries of a heap, and nothing else."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import msgspec

from bench.engine import quiet_collector
from bench.figure import Figure
from bench.playbooks import HEAD
from bench.size import sized
from noetl.control.waits_held import pending
from noetl.messages.events import Event, StepDone
from noetl.messages.requests import SendSignal
from noetl.node.local import LocalNode
from noetl.server.active import ActiveExecution
from noetl.settings import Settings

WAITING = sized(10_000)
TURNS = sized(300)
REPEATS = sized(5, small=1)
TIMERS = sized(100_000)
AT_ONCE = 1_000
"""Timers of one execution."""
WITHIN = sized(60, small=1)
"""Seconds in which all of them are due."""


def figures() -> Iterator[Figure]:
    with TemporaryDirectory() as folder, quiet_collector():
        yield asyncio.run(beside_waits(Path(folder) / "waits"))
        yield asyncio.run(beside_timers(Path(folder) / "timers"))


def looped(many: int, **wait: Any) -> dict[str, Any]:
    """A step of which so many iterations wait at once."""
    return {
        "step": "crowd",
        "loop": {
            "in": f"{{{{ range({many}) | list }}}}",
            "iterator": "n",
            "spec": {"mode": "parallel", "max_in_flight": max(1, many)},
        },
        "tool": [{"wait": {"kind": "wait", **wait}}],
    }


def written(*steps: dict[str, Any], runs: int = 100) -> str:
    limits = {"spec": {"policy": {"limits": {"max_step_runs": runs}}}}
    roots = {"executor": limits, "workflow": list(steps)}
    return HEAD + "".join(f"{key}: {msgspec.json.encode(roots[key]).decode()}\n" for key in roots)


def crowded(many: int, turns: int) -> str:
    """A step that runs `turns` times once it is told to, beside a loop that waits `many` times."""
    counts = {"n": "{{ ctx.n | default(0) + 1 }}"}
    rules = [{"else": {"then": {"set_ctx": counts}}}]
    again = {"step": "turn", "when": f"{{{{ ctx.n < {turns} }}}}"}
    return written(
        {
            "step": "start",
            "next": {"spec": {"mode": "inclusive"}, "arcs": [{"step": "crowd"}, {"step": "gate"}]},
        },
        looped(many, signal="never", timeout=86_400),
        {
            "step": "gate",
            "tool": [{"go": {"kind": "wait", "signal": "go"}}],
            "next": {"arcs": [{"step": "turn"}]},
        },
        {
            "step": "turn",
            "tool": [{"count": {"kind": "noop", "spec": {"policy": {"rules": rules}}}}],
            "next": {"arcs": [again]},
        },
        runs=turns + 10,
    )


class Turns:
    """When the turns of executions ended."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def note(self, _: ActiveExecution, events: list[Event]) -> None:
        now = perf_counter()
        self.at += [now for event in events if type(event) is StepDone and event.step == "turn"]

    async def reached(self, count: int) -> None:
        while len(self.at) < count:
            await asyncio.sleep(0)


async def turned(local: LocalNode, many: int) -> float:
    """Seconds of one turn beside so many waits."""
    turns = Turns()
    local.server.watchers[:] = [turns.note]
    active = await local.run_text(crowded(many, TURNS), folder=None, payload={})
    while sum(1 for _ in pending(active.execution)) < many + 1:
        await asyncio.sleep(0.01)
    await active.settled()
    began = perf_counter()
    await local.signal(active.execution_id, SendSignal(signal="go"))
    await turns.reached(TURNS)
    took = (perf_counter() - began) / TURNS
    if many:
        await local.order(active.execution_id, "cancel")
    await active.finished
    local.server.release(active.execution_id)
    return took


async def beside_waits(home: Path) -> Figure:
    local = await LocalNode.open(Settings(home=home, run_ahead=False))
    ours, reference = [], []
    for _ in range(REPEATS):
        reference.append(await turned(local, 0))
        ours.append(await turned(local, WAITING))
    await local.close()
    return Figure.of("a step beside 10,000 waits / alone", ours, reference, 1.2, "s")


async def beside_timers(home: Path) -> Figure:
    """
    The slowest twentieth of turns while all those timers run out, beside turns without them.

    All of them wait before the first is due: to begin so many takes about a twentieth of the
    minute, and whether the slowest turns fell into it was a matter of chance.
    """
    local = await LocalNode.open(Settings(home=home))
    alone = await lasting(local, float(sized(2, small=1)))
    many = TIMERS // AT_ONCE or 1
    began = perf_counter()
    (one,) = await all_waiting(local, 1, seconds=86_400)
    lead = 2 + 3 * many * (perf_counter() - began)
    await local.order(one.execution_id, "cancel")
    await one.finished
    after = f"{{{{ {lead} + {WITHIN} * iter.n / {AT_ONCE} }}}}"
    crowd = await all_waiting(local, many, seconds=after)
    while not any(waiting_in(active) < AT_ONCE for active in crowd):
        await asyncio.sleep(0.01)
    beside = await lasting(local, float(WITHIN))
    await asyncio.gather(*(active.finished for active in crowd))
    await local.close()
    return Figure.of("p95 of steps beside 100,000 timers / alone", [beside], [alone], 2, "s")


async def all_waiting(local: LocalNode, many: int, **wait: Any) -> list[ActiveExecution]:
    """So many executions, once each has all of its timers."""
    text = written(looped(AT_ONCE, **wait))
    crowd = [await local.run_text(text, folder=None, payload={}) for _ in range(many)]
    for active in crowd:
        while waiting_in(active) < AT_ONCE:
            await asyncio.sleep(0.01)
        await active.settled()
    return crowd


def waiting_in(active: ActiveExecution) -> int:
    return sum(1 for _ in pending(active.execution))


async def lasting(local: LocalNode, seconds: float) -> float:
    """The 95th percentile of the time that one short execution takes, over so many seconds."""
    text = crowded(0, 1)
    took: list[float] = []
    until = perf_counter() + seconds
    while perf_counter() < until or len(took) < 2:
        began = perf_counter()
        active = await local.run_text(text, folder=None, payload={})
        while not any(pending(active.execution)):
            await asyncio.sleep(0)
        await active.settled()
        await local.signal(active.execution_id, SendSignal(signal="go"))
        await active.finished
        local.server.release(active.execution_id)
        took.append(perf_counter() - began)
        await asyncio.sleep(0.005)
    return quantiles(took, n=20)[-1]
