"""
The whole system in one thread, with its own time, its own disk and its own deaths.

Everything that is left to chance comes from one seed: when the disk answers, how long a tool
takes, where the process dies, how the clock jumps. A seed that fails fails again.
"""

import asyncio
import random
import selectors
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock
from unittest.mock import AsyncMock

import msgspec
from tests.support.canned import CannedTools
from tests.support.proofs import verify_all

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.memory.storage import MemoryStorage
from noetl.control.ending import result_of
from noetl.errors import ExecutionNotFound
from noetl.messages import events as e
from noetl.messages.codec import decode_events, encode
from noetl.messages.outcome import Outcome, failed, ok
from noetl.messages.requests import Input, Report
from noetl.node.local import LocalNode
from noetl.ports.commit import Commit
from noetl.ports.event_log import Decision
from noetl.ports.result_store import ResultStore
from noetl.ports.session import Taken
from noetl.settings import Settings
from noetl.tools.playbook import PlaybookTool
from noetl.tools.tool import Tool, ToolCall, Workplace

NAME = "x1"
LIVES = 12
"""Deaths before the last life, which is not disturbed."""

Done = tuple[str, str, int]
"""Execution, task run, attempt."""


class _Selector(selectors.DefaultSelector):
    """Waits by moving the clock; with nothing to wait for, it says that the system hangs."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "the system hangs: nothing is left that could happen"
            self.now += timeout
        return ready


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only when nothing else is to be done."""

    def __init__(self) -> None:
        self.selector = _Selector()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.now


async def passed(seconds: float) -> None:
    """Until so much of the simulated time has passed, which takes no time at all."""
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, over.set)
    await over.wait()


class World:
    """What outlives a process: the disk, the clock, the ledger of effects."""

    def __init__(self, seed: int, *, jumps: bool = False) -> None:
        self.chance = random.Random(seed)
        self.tables = MemoryStorage().tables
        # Not in files: threads would have a time of their own.
        self.results = ResultStore(MemoryObjectStore())
        self.ledger: list[Done] = []
        self.recorded: set[Done] = set()
        """Outcomes that are committed."""
        self.effects: set[Done] = set()
        """Those of them whose task has an effect."""
        self.kinds: dict[tuple[str, str], str] = {}
        self.ordered: set[str] = set()
        """Runs whose order is committed, as tools name them."""
        self.wrong: list[str] = []
        self.jumps = jumps
        self.echoes = 0
        """Reports that came again."""
        self.clock = 1_700_000_000.0

    def now(self) -> float:
        """The clock on the wall: it may be set to another time at any moment (T9)."""
        if self.jumps and self.chance.random() < 0.05:
            self.clock += self.chance.uniform(-3600, 3600)
        return self.clock + asyncio.get_event_loop().time()

    def keep(self, decision: Decision) -> None:
        for event in decode_events(decision.events):
            if isinstance(event, e.TaskDone):
                done = (decision.execution_id, event.task_run_id, event.attempt)
                if done in self.recorded:
                    self.wrong.append(f"recorded twice: {done}")
                self.recorded.add(done)
                if self.kinds.get(done[:2]) == "http":
                    self.effects.add(done)
            elif isinstance(event, e.TaskStarted):
                self.kinds[decision.execution_id, event.task_run_id] = event.kind
            elif isinstance(event, e.TokenEnqueued):
                self.ordered.add(f"{decision.execution_id}/{event.step_run_id}")

    def act(self, call: ToolCall[Any]) -> None:
        """An effect happens. What must be durable before it is asked for here (promise 8)."""
        done = (call.execution_id, call.task_run_id, call.attempt)
        if done in self.recorded:
            self.wrong.append(f"run again though it is recorded: {done}")
        if call.scratch not in self.ordered:
            self.wrong.append(f"run before its order was committed: {done}")
        if call.attempt > 1 and (*done[:2], call.attempt - 1) not in self.recorded:
            self.wrong.append(f"run before the attempt before it was committed: {done}")
        prefix, _, ordinal = call.task_run_id.rpartition(".")
        before = f"{prefix}.{int(ordinal) - 1}"
        known = {run for name, run, _ in self.recorded if name == call.execution_id}
        if int(ordinal) > 1 and before not in known:
            self.wrong.append(f"run before the task before it was committed: {done}")
        self.ledger.append(done)


class Life:
    """One process, from its start to its death: it dies at the `last` point that it passes."""

    def __init__(self, world: World, last: int | None) -> None:
        self.world = world
        self.left = last
        self.dead = asyncio.get_running_loop().create_future()

    def passes(self) -> bool:
        """A point where a process may die; False from there on: nothing it does has effects."""
        if self.left is not None and not self.dead.done():
            self.left -= 1
            if self.left <= 0:
                self.dead.set_result(None)
        return not self.dead.done()


class SlowLog:
    """The log of a memory home, on a disk that takes its time and commits in groups."""

    def __init__(self, life: Life, home: MemoryStorage) -> None:
        self._life = life
        self._log = home.log
        self._queue: list[tuple[Decision, Commit]] = []
        self.read, self.snapshot, self.forget = home.log.read, home.log.snapshot, home.log.forget

    def append(self, decision: Decision, *, alone: bool = False) -> Commit:
        commit = Commit()
        if not self._life.passes():
            return commit
        self._queue.append((decision, commit))
        chance = self._life.world.chance
        if alone and len(self._queue) == 1 and chance.random() < 0.5:
            self._flush()
        elif len(self._queue) == 1:
            asyncio.get_running_loop().call_later(chance.uniform(0, 0.003), self._flush)
        return commit

    def _flush(self) -> None:
        batch, self._queue = self._queue, []
        if not self._life.passes():
            return
        answers = []
        for decision, commit in batch:
            answer = self._log.append(decision)
            answers.append((commit, answer.exception()))
            if answer.exception() is None:
                self._life.world.keep(decision)
        if self._life.passes():
            for commit, fault in answers:
                commit.settle(fault)


class EffectTools(CannedTools):
    """`http` is an effect in the ledger; `playbook` is what it is."""

    def __init__(self, life: Life) -> None:
        super().__init__()
        self._life = life

    def __getitem__(self, kind: str) -> Tool:
        return PlaybookTool() if kind == "playbook" else self

    async def call(self, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        del workplace
        life, chance = self._life, self._life.world.chance
        if life.passes():
            life.world.act(call)
        if not life.passes():
            await asyncio.get_running_loop().create_future()
        await passed(chance.choice([0, 0.001, chance.uniform(0, 0.01)]))
        if not life.passes():
            await asyncio.get_running_loop().create_future()
        return answer_of(call)


def answer_of(call: ToolCall[Any]) -> Outcome:
    """What the server of effects answers."""
    body = call.inputs.body
    if call.attempt <= body["fail"]:
        block = {"status": 503, "headers": {}}
        return failed("http", "503 busy", retryable=True, block=block)
    return ok({"status": 200, "headers": {}, "data": body["value"]})


class EchoingSession:
    """A session to which every report comes several times, late ones among them (T10)."""

    def __init__(self, local: LocalNode, world: World) -> None:
        self._local = local
        self._world = world
        self._seen: list[tuple[str, Report]] = []
        self.child, self.kept = local.session.child, local.session.kept
        self.hand_back, self.moved = local.session.hand_back, local.session.moved
        self.broken = local.session.broken
        self.far_ahead = local.session.far_ahead

    def report(self, execution_id: str, report: Report) -> Taken:
        taken = self._local.session.report(execution_id, report)
        self._seen.append((execution_id, report))
        late = self._world.chance.sample(self._seen, min(2, len(self._seen)))
        for name, again in [self._seen[-1], *late]:
            if self._local.session.report(name, again).events:
                self._world.wrong.append(f"taken twice: {again}")
        self._world.echoes += 3
        return taken

    def report_turn(self, execution_id: str, reports: list[Report]) -> list[Taken]:
        taken = self._local.session.report_turn(execution_id, reports)
        for report in reports:
            if self._local.session.report(execution_id, report).events:
                self._world.wrong.append(f"taken twice: {report}")
        self._world.echoes += len(reports)
        return taken


class Came(msgspec.Struct, frozen=True):
    """What an execution came to; equal for equal ends."""

    path: str
    status: str
    ctx: dict[str, Any]
    result: Any
    steps: dict[str, Any]
    error: Any


class Simulation:
    """A playbook, lived through with as many deaths as the seed brings."""

    def __init__(
        self, text: str, folder: Path, seed: int, *, jumps: bool = False, echoes: bool = False
    ) -> None:
        self.text = text
        self.echoes = echoes
        self.folder = folder
        self.world = World(seed, jumps=jumps)
        self.deaths = 0
        self.snapshots = self.world.chance.choice([2, 10, 1000])
        """Decisions between two snapshots."""

    def run(self, *, lives: int = LIVES, orders: Sequence[Input] = ()) -> list[Came]:
        """
        Die up to `lives` times, then live to the end; the answer is what all came to.

        `orders` are given to every life, some time apart.
        """
        for number in range(lives + 1):
            last = self.world.chance.randint(1, 60) if number < lives else None
            if self._live(f"p{number}", last, orders):
                break
            self.deaths += 1
        return asyncio.run(self._look())

    def _live(self, me: str, last: int | None, orders: Sequence[Input]) -> bool:
        with (
            asyncio.Runner(loop_factory=SimulatedLoop) as runner,
            mock.patch("time.time", self.world.now),
            mock.patch("time.monotonic", return_value=0.0),
            mock.patch("noetl.server.active.SNAPSHOT_AFTER", self.snapshots),
            # However often it dies: no death here is a task's own doing (T11).
            mock.patch("noetl.node.control_plane.has_progressed", AsyncMock(return_value=True)),
            mock.patch("noetl.server.ownership.WATCH", 60.0),
            mock.patch("noetl.worker.worker.NEWS", 5.0),
        ):
            return runner.run(self._process(me, last, orders))

    async def _process(self, me: str, last: int | None, orders: Sequence[Input]) -> bool:
        """One process; False if it died."""
        life = Life(self.world, last)
        home = MemoryStorage(self.world.tables, me)
        setattr(home, "log", SlowLog(life, home))  # noqa: B010
        settings = Settings(home=self.folder / "home", run_ahead=self.world.chance.random() < 0.7)
        tools = EffectTools(life)
        local = LocalNode(settings, home, results=self.world.results, tools=tools)
        if self.echoes:
            local.worker.session = EchoingSession(local, self.world)
        ending = asyncio.ensure_future(self._begun(local, orders))
        await asyncio.wait([ending, life.dead], return_when=asyncio.FIRST_COMPLETED)
        home.die()
        if life.dead.done():
            local.worker.stopping = True  # the dead wait for nothing
            return False
        await ending
        await local.close()
        return True

    async def _begun(self, local: LocalNode, orders: Sequence[Input]) -> None:
        try:
            active = await local.resume(NAME)
        except ExecutionNotFound:
            active = await local.run_text(
                self.text, folder=str(self.folder), payload={"url": "x"}, execution_id=NAME
            )
        for order in orders:
            await passed(self.world.chance.uniform(0, 0.03))
            if not active.finished.done():
                local.server.receive(active, order)
        await active.finished

    # ── afterwards ───────────────────────────────────────────────────────────────────────────

    async def _look(self) -> list[Came]:
        home = MemoryStorage(self.world.tables, "reader")
        local = LocalNode(
            Settings(home=self.folder / "home"),
            home,
            results=self.world.results,
            tools=CannedTools(),
        )
        found = await verify_all(home.log, home.playbooks, self.world.results, home.executions)
        self.world.wrong += [verified.message for verified in found.values() if not verified.ok]
        came = [await self._came(local, name) for name in self.world.tables.rows]
        return sorted(came, key=encode)

    async def _came(self, local: LocalNode, name: str) -> Came:
        execution, plan = await local.state(name)
        self._check_log(name)
        return Came(
            plan.path,
            execution.status,
            execution.ctx,
            result_of(execution.leaves),
            msgspec.to_builtins(execution.tallies),
            execution.error,
        )

    def _check_log(self, name: str) -> None:
        wrong, seq = self.world.wrong, 0
        for row in self.world.tables.decisions[name]:
            if row.first != seq + 1:
                wrong.append(f"{name}: a gap before {row.first}")
            seq = row.last
        events = [
            event
            for row in self.world.tables.decisions[name]
            for event in decode_events(row.events)
        ]
        ends = [n for n, event in enumerate(events) if isinstance(event, e.WorkflowFinished)]
        if ends != [len(events) - 2]:
            wrong.append(f"{name}: ends at {ends} of {len(events)} events")
        if len(events) != seq:
            wrong.append(f"{name}: {len(events)} events, seq {seq}")

    def check(self, *, stopped: bool = False) -> None:
        """
        The oracle (T18): nothing went wrong, and every effect has one accepted outcome.

        Of what was `stopped`, the last effects may be without one.
        """
        world = self.world
        effects = set(world.ledger)
        if not stopped:
            world.wrong += [f"has no outcome: {done}" for done in effects - world.recorded]
        world.wrong += [f"was never run: {done}" for done in world.effects - effects]
        assert not world.wrong, "; ".join(world.wrong)


@contextmanager
def told(seed: int) -> Iterator[None]:
    """Name the seed of whatever fails inside."""
    try:
        yield
    except BaseException as fault:
        fault.add_note(f"seed {seed}: run it again with NOETL_TEST_SEED={seed}")
        raise
