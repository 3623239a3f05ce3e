"""A decision looks into bodies: on their way to the store, in the store, or lost."""

import asyncio

import pytest
from tests.support.cluster import turns
from tests.support.scenario import Gate, ok, scenario
from tests.support.steps import arc, call, noop, refuse, step

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.node.local import LocalNode
from noetl.ports.object_store import Spool
from noetl.server.active import ActiveExecution

LARGE = "{{ 'x' * 200000 }}"


class SlowStore(MemoryObjectStore):
    """Keeps nothing before it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.asked = 0

    async def put(self, key: str, body: Spool) -> None:
        self.asked += 1
        await self.open.wait()
        await super().put(key, body)


@pytest.mark.rule("RES-2", "EVT-4")
def test_a_body_on_its_way_to_the_store_is_waited_for() -> None:
    """One branch made it, the other one's join looks into it before it can be had."""
    made = scenario(
        step("start", arcs=[arc("left"), arc("right")], mode="inclusive"),
        step("left", call("make"), arcs=[arc("both", big=LARGE)]),
        step("right", call("ask"), arcs=[arc("both")]),
        step(
            "both",
            noop("rest"),
            join={"from": ["left", "right"], "mode": "all"},
            admit=[refuse("args.big | length != 200000")],
        ),
    )
    store = SlowStore()
    made.objects = made.results.objects = store
    make, ask = Gate(ok(1)), Gate(ok(2))
    made.answers("make", make).answers("ask", ask)

    async def story(_: LocalNode, active: ActiveExecution) -> None:
        (first,), (second,) = await make.held(1), await ask.held(1)
        await make.let_go(first)
        while not store.asked:
            await asyncio.sleep(0)
        assert active.held
        await ask.let_go(second)
        await turns()
        store.open.set()

    ran = made.act(story)
    assert ran.status == "completed", ran.execution.error
    assert ran.steps["both"] == (1, 0, "done")
