"""One seed: a random playbook runs on the real server and worker, and the model reads its log."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from random import Random
from typing import Any

import msgspec
from tests.model.books import SIGNALS, Author, answer
from tests.model.pipelines import Differs, Tree
from tests.model.reading import Reader
from tests.support.scenario import Ran, Scenario

from noetl.errors import PlaybookRejected, ServerRefused
from noetl.messages.codec import decode_events
from noetl.messages.outcome import Outcome, ok
from noetl.messages.requests import SendSignal
from noetl.node.local import LocalNode
from noetl.ports.event_log import LogRow
from noetl.server.active import ActiveExecution
from noetl.tools.tool import ToolCall

PATIENCE = 600


class Compared(msgspec.Struct):
    """What a seed came to."""

    seed: int
    difference: str = ""
    seen: set[str] = msgspec.field(default_factory=set)
    text: str = ""
    log: list[str] = []


def written(seed: int) -> tuple[Scenario, Tree]:
    """The first valid playbook that the seed gives; most are."""
    for number in count():
        document = Author(Random(f"{seed} {number}")).document()
        roots = {key: value for key, value in document.items() if key != "workflow"}
        try:
            return Scenario(*document["workflow"], **roots), document
        except PlaybookRejected:
            continue
    raise AssertionError("no seed is without a valid playbook")


def compare(seed: int) -> Compared:
    scenario, document = written(seed)
    random = Random(f"ctx {seed}")
    ctx = random.choice([{}, {}, {"k0": 1}, {"k1": 2, "k2": 0}])
    played = Played(seed, scenario, orders=random.randrange(12))
    try:
        ran = asyncio.run(played.run(ctx))
    except Exception as broken:  # whatever it is, it is a finding and has a seed
        said = f"{type(broken).__name__}: {broken}"
        rows = scenario.home.tables.decisions.get("x1", [])
        return Compared(seed, difference=said, text=scenario.text, log=logged(rows))
    reader = Reader(document, ctx)
    found = Compared(seed, seen=reader.seen, text=scenario.text)
    found.log = logged(ran.rows)
    try:
        reader.read([decode_events(row.events) for row in ran.rows])
        called(reader, ran)
    except Differs as differs:
        found.difference = str(differs)
    except Exception as broken:  # the model does not understand what it reads
        found.difference = f"{type(broken).__name__}: {broken!r}"
    return found


def logged(rows: Sequence[LogRow]) -> list[str]:
    return [
        f"{number}: {msgspec.json.encode(event).decode()}"
        for number, row in enumerate(rows)
        for event in decode_events(row.events)
    ]


def called(reader: Reader, ran: Ran) -> None:
    """What the net ended with is what the server says."""
    if json.loads(json.dumps(ran.ctx)) != reader.net.ctx:
        raise Differs(f"ctx at the end: {reader.net.ctx} and {ran.ctx}")
    runs: dict[str, int] = {}
    for step, _ in reader.net.history:
        runs[step] = runs.get(step, 0) + 1
    told = {step: tally[0] for step, tally in ran.steps.items() if tally[0]}
    if told != runs:
        raise Differs(f"runs by step: {runs} and {told}")


async def turns(count: int) -> None:
    """Let the others go on: a pause is counted, never timed."""
    for _ in range(count):
        await asyncio.sleep(0)


class Played:
    """A scenario whose tools take a random number of turns, with signals and orders in between."""

    def __init__(self, seed: int, scenario: Scenario, orders: int) -> None:
        self.seed, self.scenario, self.orders = seed, scenario, orders
        self.random = Random(f"turns {seed}")
        scenario.run_ahead = self.random.random() < 0.5
        scenario.tools.call = self.call  # type: ignore[method-assign]
        self.calls = 0

    async def call(self, call: ToolCall[Any], workplace: Any) -> Outcome:
        del workplace
        self.calls += 1
        for _ in range(self.random.choice([0, 0, 1, 3, 9])):
            await asyncio.sleep(0)
        if hasattr(call.inputs, "value") and "jq" in call.inputs.__struct_fields__:
            return ok(call.inputs.value)
        return answer(f"{self.seed} {call.task_run_id} {call.attempt}")

    async def run(self, ctx: Tree) -> Ran:
        async with self.scenario.running(None, ctx) as (local, active):
            disturbing = asyncio.create_task(self.disturb(local, active))
            try:
                async with asyncio.timeout(PATIENCE):
                    await active.finished
            finally:
                disturbing.cancel()
                await asyncio.gather(disturbing, return_exceptions=True)
            return await self.scenario.ran(active)

    async def disturb(self, local: LocalNode, active: ActiveExecution) -> None:
        """Signals until the end, and now and then an order."""
        number = 0
        while not active.finished.done():
            await turns(200)
            number += 1
            given = SendSignal(signal=self.random.choice(SIGNALS), data=self.random.choice([1, 2]))
            with suppress(ServerRefused):
                await self.order(local, active, given, number)

    async def order(
        self, local: LocalNode, active: ActiveExecution, given: SendSignal, number: int
    ) -> None:
        await local.signal(active.execution_id, given)
        if number == 2 and self.orders == 0:
            await local.order(active.execution_id, "cancel")
        if number == 1 and self.orders in (1, 2):
            await local.order(active.execution_id, "pause")
            await turns(400)
            await local.order(active.execution_id, "resume")
