"""LIMIT where other parts start, stop and tell: triggers, signals, timeouts, a log that is away."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_limit import limited, limited_step
from tests.conformance.test_start import HOURS
from tests.conformance.test_start_ends import LOAD, ON_FAILURE, alarms, looked
from tests.conformance.test_start_hooks import BODY, SECRET, Caller, hook
from tests.conformance.test_start_subjects import orders, publish, until_true, watched
from tests.support.api import served
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered, turns, until
from tests.support.nats import NatsServer
from tests.support.scenario import Gate, error
from tests.support.steps import allow, call, playbook, refuse, step
from tests.support.triggers import Timed, scheduled
from tests.unit.control.test_turns import LONG, RIGHT

from noetl.adapters.nats import subjects
from noetl.errors import LogUnavailable
from noetl.messages import requests as r
from noetl.node.server import ServerNode
from noetl.node.trigger_subjects import SubjectWatch


async def at_an_hour(timed: Timed, server: ServerNode, hour: int) -> None:
    timed.clock.now = server.starts._looked = HOURS[hour] + 20
    await server.starts.look()


async def scheduled_one(
    cluster: Cluster, overlap: str, over: str
) -> tuple[Timed, ServerNode, CannedTools, Gate]:
    """A schedule whose playbook has one place, and whose first start holds it."""
    timed, tools, gate = Timed(cluster), CannedTools(), Gate()
    tools.answers["work"] = [gate, Gate()]
    server = await timed.server()
    cluster.worker(tools)
    await server.register(limited(at_once=1, over=over))
    await server.register(scheduled("0 * * * *", overlap=overlap))
    await timed.planned(server, HOURS[1])
    await at_an_hour(timed, server, 1)
    await gate.held(1)
    return timed, server, tools, gate


@pytest.mark.rule("START-3", "LIMIT-2")
def test_a_time_that_the_limit_refuses_is_skipped_with_the_reason(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        timed, server, _, gate = await scheduled_one(cluster, "allow", "refuse")
        await at_an_hour(timed, server, 2)
        row = await timed.row()
        assert "the limit of playbook 'tests/scenario' is reached" in (row.skipped_why or "")
        assert (row.planned_at, row.waits_for) == (HOURS[3], None)
        (first,) = await timed.started()
        await gate.let_go((await gate.held(1))[0])
        await cluster.end_of(first.execution_id)
        await server.starts.look()
        assert len(await timed.started()) == 1, "not tried again"

    clustered(test, tmp_path)


@pytest.mark.rule("START-3", "LIMIT-2")
def test_a_time_whose_predecessor_was_cancelled_begins_with_its_end(tmp_path: Path) -> None:
    """It had cancelled the one, and then was refused: nothing was left."""

    async def test(cluster: Cluster) -> None:
        timed, server, tools, _ = await scheduled_one(cluster, "cancel_old", "refuse")
        (first,) = await timed.started()
        await at_an_hour(timed, server, 2)
        assert (await cluster.end_of(first.execution_id)).status == "cancelled"
        await turns()
        timed.clock.move(2)
        await server.starts.look()
        _, second = await timed.started(2)
        row = await timed.row()
        assert (row.last_at, row.last_execution_id) == (HOURS[2], second.execution_id)
        assert (row.planned_at, row.waits_for) == (HOURS[3], None)
        await until(lambda: len(tools.calls) == 2)
        await server.order(second.execution_id, "cancel")
        await cluster.end_of(second.execution_id)

    clustered(test, tmp_path)


@pytest.mark.rule("START-3", "LIMIT-2")
@pytest.mark.parametrize("overlap", ["skip", "queue", "cancel_old"])
def test_a_queued_start_counts_as_running(tmp_path: Path, overlap: str) -> None:
    async def test(cluster: Cluster) -> None:
        timed, tools, gate = Timed(cluster), CannedTools(), Gate()
        tools.answers["work"] = [gate]
        server = await timed.server()
        cluster.worker(tools)
        other = await cluster.start(limited(at_once=1))
        await gate.held(1)
        await server.register(scheduled("0 * * * *", overlap=overlap))
        await timed.planned(server, HOURS[1])
        await at_an_hour(timed, server, 1)
        queued = (await timed.row()).last_execution_id
        assert queued is not None
        assert (await server.row(queued)).status == "queued"
        await at_an_hour(timed, server, 2)
        row = await timed.row()
        if overlap == "skip":
            assert f"execution {queued} still runs" in (row.skipped_why or "")
        if overlap == "queue":
            assert row.waits_for == queued
        if overlap == "cancel_old":
            assert (await cluster.end_of(queued)).status == "cancelled"
        for found in await timed.started():
            if found.execution_id != other and found.finished_at is None:
                await server.order(found.execution_id, "cancel")
                assert (await cluster.end_of(found.execution_id)).status == "cancelled"
        await gate.let_go((await gate.held(1))[0])
        assert (await cluster.end_of(other)).status == "completed"
        assert not cluster.root.tables.claims, "nothing leaks"

    clustered(test, tmp_path)


@pytest.mark.rule("START-4", "LIMIT-2")
def test_a_call_that_the_limit_refuses_is_told_and_may_come_again(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        await server.keychain.opened.store.add("shop", "generic", {"secret": SECRET})
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        cluster.worker(tools)
        text = limited({"id": 0, "agent": ""}, at_once=1, over="refuse")
        other = await cluster.start(text)
        await gate.held(1)
        await server.register(hook("noetl"))
        async with served(server) as found:
            caller = Caller(found.url)
            status, answer = await caller.signed(BODY)
            assert (status, answer["error"]["code"]) == (429, "limit_reached")
            assert "the limit of playbook 'tests/scenario'" in answer["error"]["message"]
            await server.starts.look()
            row = await cluster.root.triggers.find("shop/order")
            assert row is not None
            assert "the limit of playbook 'tests/scenario'" in (row.skipped_why or "")
            await gate.let_go((await gate.held(1))[0])
            await cluster.end_of(other)
            status, answer = await caller.signed(BODY)
            assert status == 202
            await gate.let_go((await gate.held(1))[0])
            for one in await cluster.root.executions.page():
                await cluster.end_of(one.execution_id)

    clustered(test, tmp_path)


@pytest.mark.rule("START-5", "LIMIT-2")
def test_a_message_that_the_limit_refuses_comes_until_there_is_a_place(
    nats_server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subjects, "LATER", 0.01)

    async def test(cluster: Cluster) -> None:
        client = await publish(nats_server.url, "FULL", b'{"id": 1}')
        server, watch = await watched(cluster, nats_server.url)
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        cluster.worker(tools)
        other = await cluster.start(limited({"id": 0}, at_once=1, over="refuse"))
        await gate.held(1)
        await server.register(orders("FULL"))
        came: list[str] = []
        take = SubjectWatch._take

        async def counted(watch: SubjectWatch, trigger: Any, message: Any) -> Any:
            came.append(await take(watch, trigger, message))
            return came[-1]

        # The server follows subjects itself, and may be the one that gets it.
        monkeypatch.setattr(SubjectWatch, "_take", counted)
        task = asyncio.create_task(watch.watch())
        await until(lambda: len(came) >= 7)
        assert set(came) == {"later"}, "more often than a broken one would"
        await server.starts.look()
        row = await cluster.root.triggers.find("tests/FULL")
        assert row is not None
        assert "message FULL:1 comes again: the limit of playbook" in (row.skipped_why or "")
        await gate.let_go((await gate.held(1))[0])
        await cluster.end_of(other)

        async def done() -> bool:
            return came[-1] == "done"

        await until_true(done)
        await gate.let_go((await gate.held(1))[0])
        for found in await cluster.root.executions.page():
            await cluster.end_of(found.execution_id)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await client.close()

    clustered(test, tmp_path)


@pytest.mark.rule("START-6", "LIMIT-2")
def test_an_end_that_the_limit_refuses_is_tried_again(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        tools, gate = CannedTools(), Gate()
        tools.answers["fetch"], tools.answers["work"] = [error("http", "503")], [gate]
        cluster.worker(tools)
        alarm = limited({"execution": "", "why": ""}, at_once=1, over="refuse")
        held = await cluster.start(alarm.replace("tests/scenario", "tests/alarm"))
        await gate.held(1)
        await server.register(ON_FAILURE)
        await cluster.end_of(await cluster.start(LOAD))
        await looked(server)
        assert len(await alarms(cluster)) == 1
        row = await cluster.root.triggers.find("tests/on-failure")
        assert row is not None
        assert "the limit of playbook 'tests/alarm' is reached" in (row.skipped_why or "")
        await gate.let_go((await gate.held(1))[0])
        await cluster.end_of(held)
        await looked(server)
        assert len(await alarms(cluster)) == 2
        await gate.let_go((await gate.held(1))[0])
        for found in await alarms(cluster):
            await cluster.end_of(found.execution_id)

    clustered(test, tmp_path)


@pytest.mark.rule("WAIT-4", "LIMIT-2")
def test_a_signal_to_a_queued_execution_is_kept_for_it(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        server = await cluster.server()
        cluster.worker(tools)
        text = playbook(
            step("start", call("work"), {"await": {"kind": "wait", "signal": "go"}}),
            executor={"spec": {"limit": {"at_once": 1}}},
        )
        first, second = [await cluster.start(text) for _ in range(2)]
        await gate.held(1)
        assert (await server.row(second)).status == "queued"
        for name in (second, first):
            await server.signal(name, r.SendSignal(signal="go", data=1, sender="me"))
        assert (await server.row(second)).status == "queued"
        for name in (first, second):
            await gate.let_go((await gate.held(1))[0])
            assert (await cluster.end_of(name)).status == "completed"

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-2")
def test_of_many_that_cancel_the_old_the_last_one_runs(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        tools.answers["work"] = [Gate(), Gate(), Gate(), Gate()]
        server = await cluster.server()
        cluster.worker(tools)
        entry, _ = await server.register(limited(at_once=1, over="cancel_old"))
        asks = [server.execute(playbook_id=entry.playbook_id, payload={}) for _ in range(4)]
        rows = await asyncio.gather(*asks)

        async def three_ended() -> bool:
            found = [await server.row(row.execution_id) for row in rows]
            return sum(row.finished_at is not None for row in found) == 3

        await until_true(three_ended)
        await turns()
        found = [await server.row(row.execution_id) for row in rows]
        (left,) = [row for row in found if row.finished_at is None]
        active = server.server.find(left.execution_id)
        assert active is not None
        await until(lambda: active.execution.status == "running")
        await server.order(left.execution_id, "cancel")
        await cluster.end_of(left.execution_id)

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-2", "DOC-4")
def test_the_time_of_a_queued_one_counts_although_its_decision_takes_long(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        tools.answers["work"] = [Gate(), Gate()]
        await cluster.server()
        cluster.worker(tools)
        spec = {"limit": {"at_once": 1}, "policy": {"limits": {"timeout": 0.3}}}
        text = playbook(
            step("start", call("work"), admit=[allow(LONG.format(RIGHT)), refuse()]),
            executor={"spec": spec},
        )
        first, second = [await cluster.start(text) for _ in range(2)]
        ends = [await cluster.end_of(name) for name in (first, second)]
        assert [end.status for end in ends] == ["failed", "failed"]
        assert [(end.error or {})["kind"] for end in ends] == ["timeout", "timeout"]

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-3")
def test_a_claim_that_could_not_be_made_is_made_later(tmp_path: Path, monkeypatch: Any) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        cluster.worker(CannedTools())
        limits = server.storage.limits
        take, away = limits.take, [LogUnavailable("the log is away")]

        async def taken(claims: Any) -> Any:
            if away:
                raise away.pop()
            return await take(claims)

        monkeypatch.setattr(limits, "take", taken)
        assert (await cluster.run(limited_step(at_once=1))).status == "completed"

    clustered(test, tmp_path)


@pytest.mark.rule("LIMIT-3", "SRV-3")
def test_a_start_that_is_asked_for_twice_takes_one_place(tmp_path: Path) -> None:
    """A worker that hears nothing asks for its child again while the first start is under way."""

    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate, Gate()]
        server = await cluster.server()
        cluster.worker(tools)
        entry, _ = await server.register(limited(at_once=1))
        plan = await server.library.plan_by(entry.digest)

        async def started() -> bool:
            begun = await server.start(plan, execution_id="twice", payload={}, version="1")
            return begun is not None

        first, *others = [asyncio.ensure_future(started()) for _ in range(3)]
        assert [await one for one in (first, *others)] == [True, False, False]
        assert server.server.find("twice") is not None, "it goes on, nobody took its place"
        await gate.let_go((await gate.held(1))[0])
        assert (await cluster.end_of("twice")).status == "completed"
        assert not await started(), "it is over"
        assert not cluster.root.tables.claims, "nothing is held for it"
        assert not [line for line in cluster.said if "loaded again" in line][1:], cluster.said

    clustered(test, tmp_path)
