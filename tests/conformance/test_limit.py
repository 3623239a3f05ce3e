"""LIMIT: how much runs at once, over executions and servers."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered, until
from tests.support.scenario import Gate, ok, scenario
from tests.support.steps import arc, call, noop, playbook, sets, step

from noetl.errors import LimitReached, PlaybookRejected, ServerRefused
from noetl.messages import events as e
from noetl.messages.outcome import Outcome
from noetl.node.server import ServerNode
from noetl.playbook.load import load_valid
from noetl.server.waiting import WaitReason, waits_in
from noetl.tools.tool import ToolCall


class Busy:
    """A task that counts how many of it run at once."""

    def __init__(self) -> None:
        self.now = self.most = self.ended = 0

    async def __call__(self, call: ToolCall[Any]) -> Outcome:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(20):
            await asyncio.sleep(0)
        self.now -= 1
        self.ended += 1
        return ok(call.task_run_id)


def limited(workload: dict[str, Any] | None = None, **limit: Any) -> str:
    return playbook(
        step("start", call("work")),
        executor={"spec": {"limit": limit}},
        workload=workload or {},
    )


async def waits(server: ServerNode, execution_id: str) -> list[WaitReason]:
    execution, plan = await server.state(execution_id)
    return await waits_in(server.storage, execution, plan, None)


def names(events: list[e.Event]) -> list[str]:
    return [str(type(event).__struct_config__.tag) for event in events]


@pytest.mark.rule("LIMIT-1", "LIMIT-2", "NEXT-5")
def test_what_is_over_the_limit_is_queued_and_then_runs(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        server = await cluster.server()
        cluster.worker(tools)
        text = limited(at_once=2)
        first, second, third = [await cluster.start(text) for _ in range(3)]
        await gate.held(2)
        row = await server.row(third)
        assert row.status == "queued"
        assert names(await cluster.events(third))[2:] == ["execution.queued"]
        (wait,) = await waits(server, third)
        assert wait.kind == "limit"
        said, _, more = wait.words.partition("; held by ")
        holders, _, to_do = more.partition("; ")
        assert to_do.startswith("wait until one of them ends, or end one: `noetl cancel ")
        assert said == (
            "place 1 in the queue: the limit of playbook 'tests/scenario' (at_once: 2) is reached"
        )
        assert sorted(holders.split(", ")) == sorted([first, second])
        for key in await gate.held(2):
            await gate.let_go(key)
        (key,) = await gate.held(1)
        await gate.let_go(key)
        for name in (first, second, third):
            assert (await cluster.end_of(name)).status == "completed"
        events = await cluster.events(third)
        assert names(events)[2:5] == ["execution.queued", "execution.admitted", "workflow.started"]
        assert names(await cluster.events(first))[2:4] == ["execution.admitted", "workflow.started"]

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-1")
def test_each_key_has_its_own(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        server = await cluster.server()
        cluster.worker(tools)
        text = limited({"customer": ""}, at_once=1, key="{{ workload.customer }}")
        ids = [await cluster.start(text, {"customer": name}) for name in "aab"]
        await gate.held(2)
        assert [(await server.row(name)).status for name in ids] == ["running", "queued", "running"]
        (queued,) = [x for x in await cluster.events(ids[1]) if isinstance(x, e.ExecutionQueued)]
        assert (queued.limit, queued.key, queued.place) == ("tests/scenario", "a", 1)
        for key in await gate.held(2):
            await gate.let_go(key)
        await gate.let_go((await gate.held(1))[0])
        for name in ids:
            assert (await cluster.end_of(name)).status == "completed"

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-4")
def test_the_highest_priority_goes_first(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        await cluster.server()
        cluster.worker(tools)
        text = limited({"urgent": 0}, at_once=1, priority="{{ workload.urgent }}")
        ids = [await cluster.start(text, {"urgent": urgent}) for urgent in (0, 0, 7)]
        order = []
        for _ in ids:
            (key,) = await gate.held(1)
            order.append(key.partition("/")[0].rpartition("-")[0] or key)
            await gate.let_go(key)
        ends = [await cluster.end_of(name) for name in ids]
        assert {end.status for end in ends} == {"completed"}
        assert [next(n for n, name in enumerate(ids) if name in key) for key in order] == [0, 2, 1]

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-2")
def test_over_refuse_is_told_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        server = await cluster.server()
        cluster.worker(tools)
        text = limited(at_once=1, over="refuse")
        first = await cluster.start(text)
        with pytest.raises(LimitReached, match=r"tests/scenario' is reached \(at_once: 1\)"):
            await cluster.start(text)
        assert len(await server.storage.executions.page()) == 1
        await gate.let_go((await gate.held(1))[0])
        await cluster.end_of(first)
        second = await cluster.start(text)
        await gate.let_go((await gate.held(1))[0])
        assert (await cluster.end_of(second)).status == "completed"

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-3", "LIMIT-2")
def test_one_key_at_two_servers_never_leaves_a_start_without_its_place(tmp_path: Path) -> None:
    """The one is refused while the other gets the place: it is not taken from it."""

    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        slow, quick = await cluster.server(), await cluster.server()
        cluster.worker(tools)
        await quick.register(limited(at_once=1, over="refuse"))
        first = await quick.execute(path="tests/scenario", payload={})
        (held,) = await gate.held(1)
        asked, freed = asyncio.Event(), asyncio.Event()
        withdraw = slow.limits.withdraw

        async def later(execution_id: str) -> bool:
            asked.set()
            await freed.wait()
            return await withdraw(execution_id)

        slow.limits.withdraw = later  # type: ignore[method-assign]
        given: dict[str, Any] = {"path": "tests/scenario", "payload": {}, "key": "k"}
        one = asyncio.create_task(slow.execute(**given))
        await asked.wait()
        await gate.let_go(held)
        await cluster.end_of(first.execution_id)
        other = await quick.execute(**given)
        freed.set()
        assert (await one).execution_id == other.execution_id
        with pytest.raises(LimitReached):
            await quick.execute(path="tests/scenario", payload={})
        (held,) = await gate.held(1)
        await gate.let_go(held)
        assert (await cluster.end_of(other.execution_id)).status == "completed"

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-2")
def test_over_cancel_old_stops_the_one_before(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        await cluster.server()
        cluster.worker(tools)
        text = limited(at_once=1, over="cancel_old")
        old = await cluster.start(text)
        await gate.held(1)
        new = await cluster.start(text)
        assert (await cluster.end_of(old)).status == "cancelled"
        await gate.let_go((await gate.held(2))[1])
        assert (await cluster.end_of(new)).status == "completed"

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-2", "LIMIT-3")
def test_a_queued_one_can_be_cancelled_and_not_paused(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        server = await cluster.server()
        cluster.worker(tools)
        text = limited(at_once=1)
        first, second, third = [await cluster.start(text) for _ in range(3)]
        with pytest.raises(ServerRefused, match="is queued, and nothing of it runs"):
            await server.order(second, "pause")
        await server.order(second, "cancel", "no need")
        assert (await cluster.end_of(second)).status == "cancelled"
        assert "workflow.started" not in names(await cluster.events(second))
        for name in (first, third):
            await gate.let_go((await gate.held(1))[0])
            assert (await cluster.end_of(name)).status == "completed"

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-3")
def test_five_hundred_starts_against_four_places_while_servers_die(tmp_path: Path) -> None:
    """T16: never five, none forgotten."""

    async def test(cluster: Cluster) -> None:
        tools, busy = CannedTools(), Busy()
        tools.answers["work"] = [busy]
        servers = [await cluster.server() for _ in range(3)]
        cluster.worker(tools)
        text = limited(at_once=4)
        entry, _ = await servers[0].register(text)
        asks = [
            servers[n % 3].execute(playbook_id=entry.playbook_id, payload={}) for n in range(500)
        ]
        ids = [row.execution_id for row in await asyncio.gather(*asks)]
        for _ in range(2):
            ended = busy.ended
            await until(lambda ended=ended: busy.ended >= ended + 40)
            await cluster.kill_server(cluster.servers[-1])
        for name in ids:
            assert (await cluster.end_of(name)).status == "completed"
        assert busy.most <= 4
        assert await cluster.servers[0].storage.limits.take([]) == []
        assert not cluster.root.tables.claims, "nothing leaks"

    clustered(test, tmp_path)


def limited_step(**limit: Any) -> str:
    return playbook(
        step("start", noop("begin"), arcs=[arc("work", customer="{{ workload.customer }}")]),
        step("work", call("work"), limit=limit, arcs=[arc("after")]),
        step("after", noop("end")),
        workload={"customer": "a"},
    )


@pytest.mark.rule("LIMIT-1", "LIMIT-2", "LIMIT-3")
def test_runs_of_a_step_are_limited_over_executions_and_servers(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, busy = CannedTools(), Busy()
        tools.answers["work"] = [busy]
        servers = [await cluster.server() for _ in range(2)]
        cluster.worker(tools)
        entry, _ = await servers[0].register(limited_step(at_once=2))
        rows = [
            await servers[n % 2].execute(playbook_id=entry.playbook_id, payload={})
            for n in range(30)
        ]
        for row in rows:
            assert (await cluster.end_of(row.execution_id)).status == "completed"
        assert busy.most == 2
        parked = [
            event
            for event in await cluster.events(rows[-1].execution_id)
            if isinstance(event, e.TokenParked)
        ]
        assert [event.reason for event in parked] == ["limit"]
        assert not cluster.root.tables.claims, "nothing leaks"

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-3", "DOC-4")
def test_a_token_that_is_dropped_gives_its_place_back(tmp_path: Path) -> None:
    """It had its place when it met the limit on step runs: the others waited for it for ever."""
    text = playbook(
        step("start", arcs=[arc("b"), arc("b"), arc("b")], mode="inclusive"),
        step("b", call("work"), limit={"at_once": 1}),
        executor={"spec": {"policy": {"limits": {"max_step_runs": 2}}}},
    )

    async def test(cluster: Cluster) -> None:
        await cluster.server()
        cluster.worker(CannedTools())
        execution = await cluster.run(text)
        assert execution.status == "failed"
        dropped = [
            event.reason
            for event in await cluster.events(execution.execution_id)
            if isinstance(event, e.TokenDropped)
        ]
        assert dropped == ["limit", "limit"]
        assert not cluster.root.tables.claims, "nothing leaks"

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-3", "DOC-4", "EVT-5")
def test_tokens_of_a_join_that_are_dropped_together_prove_themselves(tmp_path: Path) -> None:
    """The first of them had come before the one that had its place."""
    text = playbook(
        step("start", arcs=[arc("a"), arc("b")], mode="inclusive"),
        step("a", call("work"), arcs=[arc("both")]),
        step("b", call("work"), arcs=[arc("both")]),
        step("both", call("work"), join={"from": ["a", "b"]}, limit={"at_once": 1}),
        executor={"spec": {"policy": {"limits": {"max_step_runs": 3}}}},
    )

    async def test(cluster: Cluster) -> None:
        await cluster.server()
        cluster.worker(CannedTools())
        assert (await cluster.run(text)).status == "failed"

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-1", "LIMIT-2")
def test_a_token_that_waits_says_for_what(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        server = await cluster.server()
        cluster.worker(tools)
        text = limited_step(at_once=1, key="{{ args.customer }}")
        first, second, other = [
            await cluster.start(text, {"customer": name}) for name in ("a", "a", "b")
        ]
        await gate.held(2)
        (wait,) = await waits(server, second)
        assert (wait.step, wait.kind) == ("work", "limit")
        reached = "the limit of step 'work' (at_once: 1) is reached for 'a'"
        assert f"{reached}; held by {first}; wait until it ends" in wait.words
        await server.order(second, "pause")
        for key in await gate.held(2):
            await gate.let_go(key)
        for name in (first, other):
            assert (await cluster.end_of(name)).status == "completed"
        await server.order(second, "resume")
        await gate.let_go((await gate.held(1))[0])
        assert (await cluster.end_of(second)).status == "completed"

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-2")
def test_a_key_that_fails_is_told_and_takes_no_place(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        cluster.worker(CannedTools())
        text = limited({"customer": {}}, at_once=1, key="{{ workload.customer.id }}")
        ended = await cluster.run(text)
        assert ended.status == "failed"
        assert ended.error is not None
        assert "`executor.spec.limit`" in ended.error["message"]
        of_step = await cluster.run(limited_step(at_once=1, key="{{ args.customer.id }}"))
        assert of_step.status == "failed"
        assert of_step.error is not None
        assert "the limit of step 'work'" in of_step.error["message"]
        assert not cluster.root.tables.claims
        assert server.storage is not None

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-1")
def test_a_child_counts_with_the_execution_that_asked_for_it(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.server()
        cluster.worker(CannedTools())
        again = {"kind": "playbook", "path": "tests/scenario", "args": {"deep": 1}}
        text = playbook(
            step("start", noop("look"), arcs=[arc("deeper", "workload.deep == 0")]),
            step("deeper", {"again": again}),
            executor={"spec": {"limit": {"at_once": 1}}},
            workload={"deep": 0},
        )
        assert (await cluster.run(text)).status == "completed"

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-2")
def test_a_step_can_only_queue() -> None:
    with pytest.raises(PlaybookRejected) as rejected:
        load_valid(limited_step(at_once=1, over="refuse"))
    assert {finding.code for finding in rejected.value.findings} == {"limit-over"}


BAD = {
    "nothing": ({"over": "queue"}, "empty-limit"),
    "zero": ({"at_once": 0}, "wrong-value"),
    "an unknown word": ({"at_once": 1, "over": "wait"}, "wrong-value"),
    "per without seconds": ({"per": {"count": 3}}, "missing-key"),
    "a name that nobody sets": ({"at_once": 1, "key": "{{ ctx.nobody }}"}, "unknown-name"),
}


@pytest.mark.rule("LIMIT-1")
@pytest.mark.parametrize(("limit", "code"), BAD.values(), ids=BAD)
def test_bad_limits_are_found(limit: dict[str, Any], code: str) -> None:
    with pytest.raises(PlaybookRejected) as rejected:
        load_valid(limited(**limit))
    assert code in {finding.code for finding in rejected.value.findings}


@pytest.mark.rule("LIMIT-2", "ADM-3")
def test_who_waits_for_a_place_was_admitted_and_is_not_asked_again() -> None:
    """The first run writes what would refuse the second, which was let in before it."""
    refuses = {"when": "{{ ctx.k == 1 }}", "then": {"allow": False}}
    rules = [refuses, {"else": {"then": {"allow": True}}}]
    found = scenario(
        step("start", arcs=[arc("work"), arc("work")], mode="inclusive"),
        step("work", sets("write", k=1), admit=rules, limit={"at_once": 1}),
    )
    ran = found.run()
    assert ran.status == "completed"
    assert [event.allow for event in ran.of(e.AdmitEvaluated)] == [True, True]
    assert ran.steps["work"] == (2, 0, "done")
