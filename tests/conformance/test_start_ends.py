"""START-6: the end of an execution starts another one, once, and not for ever."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.conformance.test_start import requested
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered, until
from tests.support.scenario import error, ok
from tests.support.steps import call, noop, playbook, step
from tests.support.triggers import Timed, trigger

from noetl.errors import LogUnavailable, OutcomeUnknown, VersionConflict
from noetl.node.server import ServerNode
from noetl.ports.commit import Commit
from noetl.ports.event_log import Decision, ExecutionRow
from noetl.ports.triggers import WATCH
from noetl.server.triggering import now_ms

ALARM = playbook(step("tell", noop("t"))).replace("tests/scenario", "tests/alarm")
LOAD = playbook(step("one", call("fetch")))
ON_FAILURE = trigger(
    {"execution": {"path": "tests/sc*", "status": "failed"}},
    path="tests/on-failure",
    playbook="tests/alarm",
    payload={"execution": "{{ trigger.data.execution_id }}", "why": "{{ trigger.data.error }}"},
)


async def looked(server: ServerNode) -> None:
    """One turn of the watch, whatever time it is."""
    watch = await server.storage.triggers.find(WATCH)
    assert watch is not None
    server.ends.looked = 0
    await server.storage.triggers.put(watch)
    await server.starts.look()


async def alarms(cluster: Cluster) -> list[ExecutionRow]:
    return list(await cluster.root.executions.page(path="tests/alarm", limit=1000))


@pytest.mark.rule("START-6")
def test_a_failure_starts_the_alarm_and_a_success_does_not(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        tools = CannedTools()
        tools.answers["fetch"] = [error("http", "503"), ok("there")]
        cluster.worker(tools)
        await server.register(ALARM)
        await server.register(ON_FAILURE)
        first = await cluster.start(LOAD)
        assert (await cluster.end_of(first)).status == "failed"
        second = await cluster.start(LOAD)
        assert (await cluster.end_of(second)).status == "completed"
        await looked(server)
        await looked(server)
        (alarm,) = await alarms(cluster)
        begun = await requested(cluster, alarm.execution_id)
        assert begun.payload["execution"] == first
        assert "503" in begun.payload["why"]
        assert begun.trigger == f"trigger/tests/on-failure/{first}"
        assert begun.depth == 1
        await cluster.end_of(alarm.execution_id)
        row = await cluster.root.triggers.find("tests/on-failure")
        assert row is not None
        assert row.last_execution_id == alarm.execution_id

    clustered(test, tmp_path)


@pytest.mark.rule("START-6", "START-2")
def test_an_end_that_nobody_saw_is_found_by_the_next_server_once(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        first = await cluster.server()
        tools = CannedTools()
        tools.answers["fetch"] = [error("http", "503")] * 3
        cluster.worker(tools)
        await first.register(ALARM)
        await first.register(ON_FAILURE)
        names = [await cluster.start(LOAD) for _ in range(3)]
        for name in names:
            await cluster.end_of(name)
        await looked(first)  # it starts them, and dies before it can say how far it came
        watch = await first.storage.triggers.find(WATCH)
        assert watch is not None
        await cluster.kill_server(first)
        servers = [await cluster.server() for _ in range(2)]
        await servers[0].storage.triggers.put(replace(watch, planned_at=0, due_at=0))
        await asyncio.gather(*(server.starts.look() for server in servers))
        found = await alarms(cluster)
        assert sorted(
            [(await requested(cluster, x.execution_id)).payload["execution"] for x in found]
        ) == sorted(names)
        for alarm in found:
            await cluster.end_of(alarm.execution_id)

    clustered(test, tmp_path)


@pytest.mark.rule("START-6")
def test_a_circle_of_starts_ends_after_ten(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        cluster.worker(CannedTools())
        await server.register(ALARM)
        circle = trigger(
            {"execution": {"path": "tests/alarm"}}, path="tests/circle", playbook="tests/alarm"
        )
        await server.register(circle)
        row = await server.execute(path="tests/alarm", payload={})
        await cluster.end_of(row.execution_id)
        for _ in range(14):
            await looked(server)
            for each in await alarms(cluster):
                await cluster.end_of(each.execution_id)
        assert len(await alarms(cluster)) == 11
        told = await cluster.root.triggers.find("tests/circle")
        assert told is not None
        assert "last of 10" in (told.skipped_why or "")

    clustered(test, tmp_path)


@pytest.mark.rule("START-6")
def test_what_ended_before_is_nobodys_and_the_place_moves_on(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        timed = Timed(cluster)
        server = await cluster.server()
        tools = CannedTools()
        tools.answers["fetch"] = [error("http", "503")]
        cluster.worker(tools)
        await server.register(ALARM)
        name = await cluster.start(LOAD)
        await cluster.end_of(name)
        ended = (await server.row(name)).finished_at or 0
        await until(lambda: now_ms() > ended)
        await server.register(ON_FAILURE)
        await looked(server)
        assert not await alarms(cluster)
        before = await server.storage.triggers.find(WATCH)
        assert before is not None
        timed.clock.now = server.starts.now() + 600_000
        server.starts.now = timed.clock
        await server.starts.look()
        after = await server.storage.triggers.find(WATCH)
        assert after is not None
        assert (after.planned_at or 0) > (before.planned_at or 0)

    clustered(test, tmp_path)


async def failures(cluster: Cluster, count: int) -> list[str]:
    """A server with the alarm, and so many executions that have failed."""
    tools = CannedTools()
    tools.answers["fetch"] = [error("http", "503")] * count
    server = await Timed(cluster).server()
    cluster.worker(tools)
    await server.register(ALARM)
    await server.register(ON_FAILURE)
    server.starts.now = now_ms
    names = [await cluster.start(LOAD) for _ in range(count)]
    for name in names:
        await cluster.end_of(name)
    return names


@pytest.mark.rule("START-6", "START-2")
def test_a_start_that_could_not_be_recorded_is_made_by_the_next_look(
    tmp_path: Path, monkeypatch: Any
) -> None:
    """The log was away for one commit: neither is the key spoiled, nor do later ends wait."""

    async def test(cluster: Cluster) -> None:
        names = await failures(cluster, 2)
        (server,) = cluster.servers
        log = server.storage.log
        append = log.append

        def away(decision: Decision, *, alone: bool = False) -> Commit:
            monkeypatch.setattr(log, "append", append)
            late = append(replace(decision, expected=7), alone=alone)
            assert isinstance(late.exception(), VersionConflict), "it is refused from now on"
            commit = Commit()
            commit.settle(LogUnavailable("the log is away"))
            return commit

        monkeypatch.setattr(log, "append", away)
        with pytest.raises(OutcomeUnknown):
            await looked(server)
        assert not await alarms(cluster)
        await looked(server)
        found = [await requested(cluster, one.execution_id) for one in await alarms(cluster)]
        assert sorted(one.payload["execution"] for one in found) == sorted(names)

    clustered(test, tmp_path)


@pytest.mark.rule("START-6")
@pytest.mark.parametrize("fault", [ZeroDivisionError(), VersionConflict("another was first")])
def test_an_end_that_breaks_holds_up_no_other_and_comes_again(
    tmp_path: Path, monkeypatch: Any, fault: Exception
) -> None:
    async def test(cluster: Cluster) -> None:
        first, second = await failures(cluster, 2)
        (server,) = cluster.servers
        start = server.starts.start

        async def breaks(document: Any, occurrence: str, **more: Any) -> Any:
            if occurrence == first:
                raise fault
            return await start(document, occurrence, **more)

        monkeypatch.setattr(server.starts, "start", breaks)
        await looked(server)
        (alarm,) = await alarms(cluster)
        assert (await requested(cluster, alarm.execution_id)).payload["execution"] == second
        monkeypatch.setattr(server.starts, "start", start)
        server.ends._whole = 0  # as after ten seconds
        await looked(server)
        assert len(await alarms(cluster)) == 2

    clustered(test, tmp_path)
