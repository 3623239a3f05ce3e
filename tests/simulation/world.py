"""
Servers, workers, a database, a bucket, a network and clients, in one thread and one seed.

`run` lets a scenario happen and raises Violation where a promise was broken.
"""

import asyncio
import gc
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Iterator
from functools import partial
from typing import Any

import msgspec
from tests.simulation import clients, troubles
from tests.simulation.audit import Auditor, Violation, planned, read_once
from tests.simulation.clocks import simulated
from tests.simulation.endless import bounded
from tests.simulation.hosts import ServerHost, WorkerHost, settings
from tests.simulation.line import Network
from tests.simulation.loop import SimulatedLoop
from tests.simulation.playbooks import schedule, written
from tests.simulation.scenario import Scenario, drawn
from tests.simulation.standing import QUIET, Standing
from tests.simulation.storage import Disk, Living, SimulatedObjects

from noetl.adapters.memory.storage import MemoryStorage
from noetl.adapters.memory.tables import MemoryTables
from noetl.control.execution import Execution
from noetl.node import work_plane
from noetl.node.server import ServerNode
from noetl.playbook import load as loading
from noetl.ports.pools import PoolRow
from noetl.ports.result_store import ResultStore
from noetl.server import library
from noetl.server import verify as verifying
from noetl.server.verify import verify

MOST_TURNS = 400_000
READING = (
    (loading, "load", read_once),
    (library, "plan_from", planned),
    (library, "plan_of_new", planned),
    (work_plane, "plan_from", planned),
    (verifying, "plan_from", planned),
)
"""Where texts become plans: plans are values, so every node may have the same one."""
PATIENT = 150.0
"""Seconds after the last fault for which executions may go on by themselves; then they are
cancelled."""
BOUND = 120.0
"""Seconds within which every cancelled execution has ended, once all faults are over."""


class Ended(msgspec.Struct):
    """What a run came to."""

    digest: str
    seconds: float
    decisions: int
    effects: int
    zombies: int
    ends: dict[str, int]
    counts: dict[str, int]
    said: dict[str, int]


class World:
    """Everything there is."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.seed = scenario.seed
        self.setup = setup = drawn(scenario)
        self.loop = SimulatedLoop()
        self.loop.most_turns = MOST_TURNS
        self.tables = MemoryTables()
        self.tables.alive = Living(self.loop)
        self.tables.key = b"k" * 32
        if setup.pool:
            row = PoolRow(name="default", at_once=setup.pool, set_at=0)
            self.tables.pools[row.name] = row
        self.bodies: dict[str, bytes] = {}
        self.audit = Auditor(self.loop, self.tables)
        latency = setup.chances["latency"]
        self.network = Network(self.loop, scenario.chance("network"), max(latency, 0.002))
        self.network.granted = self.audit.granted
        self.bucket = Disk(self.loop, scenario.chance("bucket"), latency)
        self.settings = settings(
            setup.lease, run_ahead=setup.run_ahead, concurrency=setup.concurrency
        )
        self.servers = [ServerHost(self, f"s{number}") for number in range(setup.servers)]
        self.disks = [host.disk for host in self.servers]
        self.workers = [WorkerHost(self, f"w{number}") for number in range(setup.workers)]
        self.healed = False
        self.paths: list[str] = []
        self.said: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.accepted: dict[str, float] = {}
        """Executions that a client was told of."""

    def heard(self, who: str, what: str) -> None:
        """Whatever a node tells people; a fault of ours is one."""
        self.audit.say(f"{who} says: {what[:160]}")
        self.said[what.partition(":")[0][:40]] += 1
        for bug in ("a bug in NoETL", "a fault of NoETL itself"):
            self.audit.check(bug not in what, f"{who} says: {what}")

    async def live(self) -> None:
        for host in (*self.servers, *self.workers):
            host.start()
        await self._until(lambda: all(host.plane for host in self.servers), 60.0, "all began")
        await self._register()
        self._trouble()
        asking = [self.loop.create_task(work) for work in clients.works(self)]
        troubles.schedule(self)
        until = self.loop.now + self.setup.span
        while self.loop.now < until and not self._idle(asking):
            await asyncio.sleep(0.5)
        troubles.heal(self)
        await asyncio.wait(asking)
        for task in asking:
            task.result()
        await self._end()
        await self._prove()

    def _idle(self, asking: list["asyncio.Task[None]"]) -> bool:
        """Whether nobody wants anything any more: faults are of no interest then."""
        return all(task.done() for task in asking) and not self.open_rows()

    async def _register(self) -> None:
        children: list[str] = []
        for number in range(self.setup.playbooks):
            chance = self.scenario.chance(f"playbook {number}")
            text = written(chance, f"p{number}", self.setup.size, children)
            entry, _ = await self.ask(self.servers[0], partial(_registered, text), 60.0)
            if not self.setup.pool:  # a part that waits for a child keeps its place (decision 0067)
                children = [*children, entry.path]
            self.paths.append(entry.path)
        if self.setup.every:
            text = schedule(self.paths[0], self.setup.every, self.setup.overlap)
            await self.ask(self.servers[0], partial(_registered, text), 60.0)

    def _trouble(self) -> None:
        chances, network = self.setup.chances, self.network
        network.loses, network.doubles = chances["lost"], chances["doubled"]
        network.delays = chances["delayed"]
        for disk in (*self.disks, self.bucket):
            disk.lossy = chances["deaf"]

    # ── the end ──────────────────────────────────────────────────────────────────────────────

    def open_rows(self) -> list[str]:
        return [row.execution_id for row in self.tables.rows.values() if row.finished_at is None]

    async def _end(self) -> None:
        """Liveness: whatever happened before, everything ends once nothing happens any more."""
        standing = Standing(self.tables, self.loop.now)
        until = self.loop.now + PATIENT
        while self.open_rows() and self.loop.now < until:
            await clients.resume_all(self)
            self._compare()
            await asyncio.sleep(3.0)
            still = standing.found(
                self._states(),
                self.audit.acted,
                self.loop.now,
                crowded=self._crowded(),
                held=frozenset(self._held()),
            )
            if still:
                raise Violation(f"nothing happens for {QUIET:g} s to {still}")
        bound = self.loop.now + BOUND
        while self.open_rows():
            self.counts["cancelled at the end"] += 1
            await clients.cancel_all(self)
            await asyncio.sleep(3.0)
            if self.loop.now > bound:
                raise Violation(f"stuck for {BOUND:g} s after a cancel: {self.open_rows()}")
        self._compare()

    def _planes(self) -> list[ServerNode]:
        return [host.plane for host in self.servers if host.plane is not None]

    def _states(self) -> list[Execution]:
        return [active.execution for plane in self._planes() for active in plane.server.owned]

    def _held(self) -> Iterator[str]:
        """Executions of which a worker has a part, as their owner knows."""
        for plane in self._planes():
            for active in plane.server.owned:
                if plane.dispatcher.leases.of_execution(active.execution_id):
                    yield active.execution_id

    def _crowded(self) -> bool:
        planes = [host.plane for host in self.workers if host.plane is not None]
        taken = set(self._taken())
        return all(plane.session.free == 0 or plane.name in taken for plane in planes)

    def _taken(self) -> Iterator[str]:
        """Workers that take nothing more: they run a suspect alone, or are to run the next one."""
        for plane in self._planes():
            suspect = plane.dispatcher.parts.suspect("default")
            for lease in plane.dispatcher.leases.all():
                if lease.alone or suspect is not None:
                    yield lease.worker

    def _compare(self) -> None:
        for host in self.servers:
            if host.plane is not None:
                for active in host.plane.server.owned:
                    self.audit.compare(host.name, active)

    async def _prove(self) -> None:
        """`replay --verify`, and what was promised to clients."""
        self.audit.say("all have ended")
        home = MemoryStorage(self.tables, "proof")
        calm = Disk(self.loop, self.scenario.chance("proof"), 0.0)
        results = ResultStore(SimulatedObjects(self.bodies, calm))
        for name, row in self.tables.rows.items():
            found = await verify(home.log, home.playbooks, results, name)
            if not found.ok:
                raise Violation(f"{name} does not prove itself: {found.message}")
            story = self.audit.stories[name]
            if story.ended != row.status:
                raise Violation(f"{name} ended {story.ended}, its row says {row.status}")
        for name in self.accepted:
            if name not in self.tables.rows:
                raise Violation(f"{name} was accepted and is not there (promise 1)")

    async def _until(self, fact: Callable[[], bool], seconds: float, what: str) -> None:
        until = self.loop.now + seconds
        while not fact():
            if self.loop.now > until:
                raise Violation(f"not within {seconds:g} s: {what}")
            await asyncio.sleep(0.1)

    # ── asking a server ──────────────────────────────────────────────────────────────────────

    async def ask(
        self,
        host: ServerHost,
        work: Callable[[ServerNode], Coroutine[Any, Any, Any]],
        seconds: float,
    ) -> Any:
        """What a server answers a client; TimeoutError where it does not."""
        node, plane = host.node, host.plane
        if node is None or plane is None:
            await asyncio.sleep(0.1)
            raise TimeoutError
        task = self.loop.on(node, work(plane))
        done, _ = await asyncio.wait([task], timeout=seconds)
        if not done:
            raise TimeoutError
        return task.result()


def _registered(text: str, plane: ServerNode) -> Coroutine[Any, Any, Any]:
    return plane.register(text)


def _once() -> Generator[bool, None, None]:
    yield True
    while True:
        yield False


WARM = Scenario(seed=1)
"""Run first in every process: what is imported and remembered with the first use is there then,
so that a seed is the same story whether it is the first of its process or not."""
WARMED = _once()


def run(scenario: Scenario) -> Ended:
    """Let it happen; raises Violation. What is left of the world is gone when this returns."""
    if scenario is not WARM and WARMED.send(None):
        run(WARM)
    gc.freeze()
    gc.disable()
    kept = [(module, name, getattr(module, name)) for module, name, _ in READING]
    hook = sys.unraisablehook
    for module, name, ours in READING:
        setattr(module, name, ours)
    sys.unraisablehook = _nothing
    broken: Violation | None = None
    try:
        return _lived(scenario)
    except Violation as violation:  # another one, which does not hold the world
        broken = Violation(str(violation))
        broken.trace = violation.trace
    finally:
        asyncio.set_event_loop(None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            gc.collect()  # coroutines of the dead end here, where nobody hears them
        gc.enable()
        gc.unfreeze()
        sys.unraisablehook = hook
        for module, name, made in kept:
            setattr(module, name, made)
    raise broken


def _lived(scenario: Scenario) -> Ended:
    world = World(scenario)
    loop = world.loop
    asyncio.set_event_loop(loop)
    try:
        with simulated(loop, scenario.chance("program")), bounded():
            loop.run_until_complete(world.live())
    except Exception as fault:
        broken = world.audit.broken
        told = ""
        if broken is None and isinstance(fault, Violation):
            broken = fault
        elif broken is None:
            broken, told = Violation(f"{type(fault).__name__}: {fault}"), traceback.format_exc()
        broken.trace = world.audit.last_lines() + told
        raise broken from None
    finally:
        loop.over = True
    return Ended(
        digest=world.audit.digest.hexdigest(),
        seconds=loop.now,
        decisions=world.audit.decisions,
        effects=world.audit.effects,
        zombies=world.audit.zombies,
        ends=dict(Counter(row.status for row in world.tables.rows.values())),
        counts=dict(
            sum((disk.counts for disk in world.disks), world.counts + world.network.counts)
        ),
        said=dict(world.said),
    )


def _nothing(_: object) -> None:
    """A coroutine that will never go on is no news."""
