"""
A playbook, canned answers for its tasks, and everything that came of it.

A scenario runs on the real server and the real worker, in memory; only tools and pauses are made
up. Tests compare whole lists, so that "and then nothing" is always part of what they say.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import msgspec
from tests.support.canned import Answer, CannedTools
from tests.support.steps import Tree, playbook

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.memory.storage import MemoryStorage
from noetl.control.ending import result_of
from noetl.control.execution import Execution
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.codec import decode_events
from noetl.messages.outcome import Outcome, failed
from noetl.messages.outcome import ok as ok_outcome
from noetl.node.local import LocalNode
from noetl.playbook.load import load_valid
from noetl.playbook.plan import make_plan
from noetl.ports.result_store import ResultStore
from noetl.server.active import ActiveExecution
from noetl.server.verify import verify
from noetl.settings import Settings
from noetl.tools.tool import ToolCall

HOME = Path("/nowhere")
"""No scenario writes to a disk."""


def ok(result: Any = None, **block: Any) -> Outcome:
    """A success; `http={"status": 200}` is the kind's block."""
    return ok_outcome(result, block=_only(block))


def error(kind: str, message: str = "no luck", *, retryable: bool = False, **block: Any) -> Outcome:
    """A failure; `http={"status": 503}` is the kind's block."""
    return failed(kind, message, retryable=retryable, block=_only(block))


def _only(blocks: dict[str, Any]) -> dict[str, Any] | None:
    return next(iter(blocks.values()), None)


class Ran:
    """What an execution came to, read from its log and from the state that the server holds."""

    def __init__(self, execution: Execution, home: MemoryStorage, tools: CannedTools) -> None:
        self.execution = execution
        self.rows = home.tables.decisions.get(execution.execution_id, [])
        self.events: list[e.Event] = [
            event for row in self.rows for event in decode_events(row.events)
        ]
        self.calls = tools.calls
        self.pauses = tools.pauses
        self.bodies: dict[str, bytes] = {}

    @property
    def names(self) -> list[str]:
        return [name_of(event) for event in self.events]

    @property
    def status(self) -> str:
        return self.execution.status

    @property
    def ctx(self) -> dict[str, Any]:
        return self.execution.ctx

    @property
    def result(self) -> Any:
        return result_of(self.execution.leaves)

    @property
    def error(self) -> dict[str, Any]:
        assert self.execution.error is not None, "the execution has no error"
        return self.execution.error

    @property
    def steps(self) -> dict[str, tuple[int, int, str]]:
        """Step → runs, failed runs, last status."""
        tallies = self.execution.tallies
        return {name: (tally.runs, tally.failed, tally.status) for name, tally in tallies.items()}

    def of(self, kind: type[Any], **fields: Any) -> list[Any]:
        """The events of a class whose fields have these values."""
        return [
            event
            for event in self.events
            if type(event) is kind
            and all(getattr(event, name) == value for name, value in fields.items())
        ]

    def one(self, kind: type[Any], **fields: Any) -> Any:
        (event,) = self.of(kind, **fields)
        return event

    def labels(self) -> list[str]:
        """The labels of the tasks whose tools were called, in the order of the calls."""
        return [call.label for call in self.calls]

    def inputs(self, label: str) -> list[Any]:
        """The `body` that each call of a task was given."""
        return [call.inputs.body for call in self.calls if call.label == label]

    def story(self, step: str | None = None) -> list[str]:
        """`name step` for each event, or the names of one step's events."""
        named = [(name_of(event), getattr(event, "step", None)) for event in self.events]
        if step is None:
            return [name if at is None else f"{name} {at}" for name, at in named]
        return [name for name, at in named if at == step]


def name_of(event: e.Event) -> str:
    name = type(event).__struct_config__.tag
    assert isinstance(name, str), "every event has a name"
    return name


class Scenario:
    """A playbook and the answers of its tools."""

    def __init__(self, *steps: Tree, **roots: Any) -> None:
        self.text = playbook(*steps, **roots)
        self.plan = make_plan(load_valid(self.text), self.text)
        self.tools = CannedTools()
        self.home = MemoryStorage()
        self.objects = MemoryObjectStore()
        self.results = ResultStore(self.objects)
        self.run_ahead = True

    def answers(self, label: str, *answers: Answer) -> Self:
        """What the tool of a task gives, call by call; the last answer is given again."""
        self.tools.answers[label] = list(answers)
        return self

    def carefully(self) -> Self:
        """Nothing runs ahead of its commit."""
        self.run_ahead = False
        return self

    def local(self, me: str = "1") -> LocalNode:
        """A process on this scenario's home."""
        settings = Settings(home=HOME, run_ahead=self.run_ahead)
        home = self.home if me == "1" else self.home.beside(me)
        local = LocalNode(settings, home, results=self.results, tools=self.tools)
        local.worker.sleep = self.tools.sleep
        return local

    def run(self, payload: Mapping[str, Any] | None = None, ctx: Any = None) -> Ran:
        """Run to the end."""

        async def whole() -> Ran:
            async with self.running(payload, ctx) as (_, active):
                await active.finished
                return await self.ran(active)

        return asyncio.run(whole())

    def act(
        self, story: Callable[[LocalNode, ActiveExecution], Awaitable[None]], **start: Any
    ) -> Ran:
        """Start, let `story` interfere, and run to the end."""

        async def whole() -> Ran:
            async with self.running(**start) as (local, active):
                await story(local, active)
                await active.finished
                return await self.ran(active)

        return asyncio.run(whole())

    @asynccontextmanager
    async def running(
        self, payload: Mapping[str, Any] | None = None, ctx: Any = None
    ) -> AsyncIterator[tuple[LocalNode, ActiveExecution]]:
        local = self.local()
        try:
            await local.library.plan_of(self.text, None)
            yield local, local.server.start(self.request(payload, ctx), self.plan, None)
        finally:
            await local.close()

    def request(self, payload: Mapping[str, Any] | None, ctx: Any) -> r.StartExecution:
        return r.StartExecution(
            execution_id="x1",
            path=self.plan.path,
            digest=self.plan.digest,
            payload=dict(payload or {}),
            ctx=ctx or {},
            store="memory",
        )

    async def ran(self, active: ActiveExecution) -> Ran:
        """What came of it. Whatever a scenario is about, its log must prove itself (EVT-5)."""
        found = await verify(self.home.log, self.home.playbooks, self.results, "x1")
        assert found.ok, found.message
        ran = Ran(active.execution, self.home, self.tools)
        ran.bodies = self.objects.kept
        return ran


def scenario(*steps: Tree, **roots: Any) -> Scenario:
    """The steps of a playbook, and its other root keys (`workload`, `executor`, …)."""
    return Scenario(*steps, **roots)


class Gate:
    """Answers that wait until the test lets them go: the order of completion is the test's."""

    def __init__(self, *answers: Outcome) -> None:
        self._answers = list(answers)
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._arrived: asyncio.Event | None = None

    async def __call__(self, call: ToolCall[Any]) -> Outcome:
        future = asyncio.get_running_loop().create_future()
        self._waiting[call.idempotency_key] = future
        if self._arrived is not None:
            self._arrived.set()
        await future
        return self._answers.pop(0) if self._answers else ok(call.task_run_id)

    async def held(self, count: int) -> list[str]:
        """Wait until so many calls are held; their keys in order of arrival."""
        while len(self._waiting) < count:
            self._arrived = asyncio.Event()
            await self._arrived.wait()
        return list(self._waiting)

    async def let_go(self, key: str) -> None:
        self._waiting.pop(key).set_result(None)
        for _ in range(5):  # turns in which the answer reaches the log
            await asyncio.sleep(0)


def bare(event: e.Event) -> dict[str, Any]:
    """An event as plain data."""
    fields = msgspec.to_builtins(event)
    assert isinstance(fields, dict)
    return fields
