"""LIMIT in processes that share a home, as `noetl run` does: the same limits, and no server."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_limit import Busy, limited, limited_step, names
from tests.support.canned import CannedTools
from tests.support.cluster import PATIENCE
from tests.support.proofs import verify_all
from tests.support.scenario import Gate

from noetl.errors import LimitReached
from noetl.messages.codec import decode_events
from noetl.node.local import LocalNode
from noetl.node.opening import open_local_storage, open_results
from noetl.server.active import ActiveExecution
from noetl.server.replay import rows_of
from noetl.server.waiting import WaitReason, waits_in
from noetl.settings import Settings


class House:
    """Nodes of `noetl run`, each with storage and worker of its own, on one SQLite home."""

    def __init__(self, home: Path, answer: Any) -> None:
        self._home = home
        self.tools = CannedTools()
        self.tools.answers["work"] = [answer]
        self.nodes: list[LocalNode] = []

    async def node(self) -> LocalNode:
        settings = Settings(home=self._home)
        storage = await open_local_storage(settings)
        results = open_results(settings, local=True)
        self.nodes.append(LocalNode(settings, storage, results=results, tools=self.tools))
        return self.nodes[-1]

    async def close(self) -> None:
        node = self.nodes[0]
        storage = node.storage
        found = await verify_all(storage.log, storage.playbooks, node.results, storage.executions)
        assert [one.message for one in found.values() if not one.ok] == []
        for node in self.nodes:
            await node.close()


def housed(test: Callable[[House], Awaitable[None]], home: Path, answer: Any) -> None:
    async def run() -> None:
        house = House(home, answer)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(house.close)
            await test(house)

    asyncio.run(run())


async def begun(node: LocalNode, text: str, **payload: Any) -> ActiveExecution:
    active = await node.run_text(text, folder=None, payload=payload)
    await active.settled()
    return active


async def reasons(node: LocalNode, active: ActiveExecution) -> list[WaitReason]:
    execution, plan = await node.state(active.execution_id)
    return await waits_in(node.storage, execution, plan, None)


async def told(node: LocalNode, active: ActiveExecution) -> list[str]:
    rows = rows_of(node.storage.log, active.execution_id)
    return names([event async for row in rows for event in decode_events(row.events)])


async def ends(*actives: ActiveExecution) -> list[str]:
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(active.finished for active in actives))
    return [active.execution.status for active in actives]


@pytest.mark.rule("LIMIT-1", "LIMIT-2", "NEXT-5")
def test_a_second_process_waits_for_the_first(tmp_path: Path) -> None:
    gate = Gate()

    async def test(house: House) -> None:
        one, other = await house.node(), await house.node()
        first = await begun(one, limited(at_once=1))
        second = await begun(other, limited(at_once=1))
        await gate.held(1)
        (wait,) = await reasons(one, second)
        assert wait.words == (
            "place 1 in the queue: the limit of playbook 'tests/scenario' (at_once: 1) is reached; "
            f"held by {first.execution_id}; wait until it ends, or end it: "
            f"`noetl cancel {first.execution_id}`"
        )
        row = await one.row(second.execution_id)
        assert (row.status, row.owner) == ("queued", other.storage.owners.me), "it stays with it"
        await gate.let_go((await gate.held(1))[0])
        await gate.let_go((await gate.held(1))[0])
        assert await ends(first, second) == ["completed", "completed"]
        events = await told(one, second)
        assert events[2:5] == ["execution.queued", "execution.admitted", "workflow.started"]

    housed(test, tmp_path, gate)


@pytest.mark.rule("LIMIT-1", "LIMIT-3")
@pytest.mark.parametrize("text", [limited(at_once=2), limited_step(at_once=2)])
def test_processes_that_share_a_home_never_exceed_a_limit(tmp_path: Path, text: str) -> None:
    busy = Busy()

    async def test(house: House) -> None:
        nodes = [await house.node() for _ in range(3)]
        actives = [await begun(nodes[number % 3], text) for number in range(24)]
        assert set(await ends(*actives)) == {"completed"}
        assert busy.most <= 2
        assert busy.ended == 24
        for active in actives:
            places = await nodes[0].storage.limits.places(active.execution_id)
            assert places == [], "nothing leaks"

    housed(test, tmp_path, busy)


@pytest.mark.rule("LIMIT-2")
def test_over_refuse_and_cancel_old_hold_between_processes(tmp_path: Path) -> None:
    gate = Gate()

    async def test(house: House) -> None:
        one, other = await house.node(), await house.node()
        first = await begun(one, limited(at_once=1, over="refuse"))
        await gate.held(1)
        with pytest.raises(LimitReached, match=r"is reached \(at_once: 1\)"):
            await begun(other, limited(at_once=1, over="refuse"))
        second = await begun(other, limited(at_once=1, over="cancel_old"))
        assert await ends(first) == ["cancelled"]
        (_, key) = await gate.held(2)
        await gate.let_go(key)
        assert await ends(second) == ["completed"]

    housed(test, tmp_path, gate)


@pytest.mark.rule("LIMIT-1", "LIMIT-4")
def test_priority_then_the_keys_in_turn_then_age(tmp_path: Path) -> None:
    gate = Gate()

    async def test(house: House) -> None:
        one, other = await house.node(), await house.node()
        text = limited(
            {"customer": "", "urgent": 0},
            at_once=9,
            total=1,
            key="{{ workload.customer }}",
            priority="{{ workload.urgent }}",
        )
        asked: list[dict[str, Any]] = [
            {"customer": "a"},
            {"customer": "a"},
            {"customer": "a"},
            {"customer": "b"},
            {"customer": "c", "urgent": 5},
        ]
        actives = [
            await begun((one, other)[number % 2], text, **payload)
            for number, payload in enumerate(asked)
        ]
        order = []
        for _ in asked:
            (key,) = await gate.held(1)
            order += [n for n, active in enumerate(actives) if key.startswith(active.execution_id)]
            await gate.let_go(key)
        assert set(await ends(*actives)) == {"completed"}
        assert order == [0, 4, 1, 3, 2]

    housed(test, tmp_path, gate)


@pytest.mark.rule("LIMIT-1", "LIMIT-2")
def test_a_token_of_a_limited_step_waits_for_another_process(tmp_path: Path) -> None:
    gate = Gate()

    async def test(house: House) -> None:
        one, other = await house.node(), await house.node()
        text = limited_step(at_once=1, key="{{ args.customer }}")
        first = await begun(one, text, customer="a")
        await gate.held(1)
        second = await begun(other, text, customer="a")
        third = await begun(other, text, customer="b")
        await gate.held(2)
        (wait,) = await reasons(one, second)
        reached = "the limit of step 'work' (at_once: 1) is reached for 'a'"
        assert f"{reached}; held by {first.execution_id}; wait until it ends" in wait.words
        for key in await gate.held(2):
            await gate.let_go(key)
        await gate.let_go((await gate.held(1))[0])
        assert await ends(first, second, third) == ["completed"] * 3

    housed(test, tmp_path, gate)


@pytest.mark.rule("LIMIT-2", "LIMIT-3")
def test_a_place_of_one_that_nobody_runs_is_named_with_what_to_do(tmp_path: Path) -> None:
    """It keeps its place: whoever resumes it would exceed the limit otherwise."""
    gate = Gate()

    async def test(house: House) -> None:
        gone, other = await house.node(), await house.node()
        first = await begun(gone, limited(at_once=1))
        await gate.held(1)
        gone.server.release(first.execution_id)
        await gone.storage.owners.release(first.execution_id)  # as after the death of its process
        second = await begun(other, limited(at_once=1))
        (wait,) = await reasons(other, second)
        name = first.execution_id
        assert wait.words.endswith(
            f"held by {name}, which no process runs: `noetl resume {name}` or `noetl cancel {name}`"
        )
        await other.cancel_abandoned(name, "its process is gone")
        await gate.let_go((await gate.held(2))[1])
        assert await ends(second) == ["completed"]

    housed(test, tmp_path, gate)
