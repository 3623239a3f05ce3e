"""START: schedules start executions, once each, whatever servers and clocks do."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered, turns
from tests.support.scenario import Gate, ok
from tests.support.steps import call, playbook, step
from tests.support.triggers import NOW, PATH, QUICK, Timed, scheduled, trigger

from noetl.api.questions import PlaneQuestions
from noetl.errors import LogUnavailable, PlaybookRejected, ServerRefused
from noetl.messages.envelope import timestamp
from noetl.messages.events import ExecutionRequested
from noetl.node.triggers import key_of
from noetl.playbook import trigger_blocks
from noetl.playbook.shape import Field, Number
from noetl.server import triggering

HOUR = 3600
HOURS = [NOW - NOW % 3_600_000 + n * 3_600_000 for n in range(10)]
SLOW = playbook(step("one", call("fetch")))


async def requested(cluster: Cluster, execution_id: str) -> ExecutionRequested:
    first = (await cluster.events(execution_id))[0]
    assert isinstance(first, ExecutionRequested)
    return first


@pytest.mark.rule("START-1", "START-2", "START-3")
def test_a_planned_time_starts_the_playbook_with_its_payload(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        timed = Timed(cluster)
        server = await timed.server()
        cluster.worker(CannedTools())
        await server.register(QUICK)
        text = trigger({"schedule": {"cron": "0 * * * *"}}, payload={"day": "{{ trigger.at }}"})
        entry, fresh = await server.register(text)
        assert (entry.path, entry.version, fresh) == (PATH, 1, True)
        await timed.planned(server, HOURS[1])
        await server.starts.look()
        assert not await timed.started()
        timed.clock.now = HOURS[1] + 20
        await server.starts.look()
        (row,) = await timed.started(1)
        begun = await requested(cluster, row.execution_id)
        at = timestamp(HOURS[1])
        assert begun.payload == {"day": at, "trigger": {"name": "nightly", "at": at}}
        assert begun.trigger == key_of(PATH, at) == f"trigger/{PATH}/{at}"
        assert (await cluster.end_of(row.execution_id)).status == "completed"
        state = await timed.row()
        assert (state.last_at, state.last_execution_id) == (HOURS[1], row.execution_id)
        assert state.planned_at == HOURS[2]
        await server.starts.look()
        assert len(await timed.started()) == 1

    clustered(test, tmp_path)


@pytest.mark.rule("START-2")
def test_servers_that_race_start_each_time_once(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        timed = Timed(cluster)
        servers = [await timed.server() for _ in range(2)]
        cluster.worker(CannedTools())
        await servers[0].register(QUICK)
        paths = [f"tests/t{n}" for n in range(20)]
        for path in paths:
            await servers[0].register(scheduled("0 * * * *", path=path))
            await timed.planned(servers[0], HOURS[1], path=path)
        timed.clock.now = HOURS[3] + 20
        for server in servers:
            server.starts.watching, server.starts._looked = HOURS[0], timed.clock.now
        await asyncio.gather(*(server.starts.look() for server in servers))
        rows = await timed.started(60)
        keys = [(await requested(cluster, row.execution_id)).trigger for row in rows]
        wanted = {key_of(path, timestamp(at)) for path in paths for at in HOURS[1:4]}
        assert len(keys) == len(set(keys)) == 60
        assert set(keys) == wanted
        for row in rows:
            await cluster.end_of(row.execution_id)

    clustered(test, tmp_path)


@pytest.mark.rule("START-2")
def test_the_same_row_in_two_hands_starts_once(tmp_path: Path) -> None:
    """As after a pause longer than the time for which a row is taken."""

    async def test(cluster: Cluster) -> None:
        timed = Timed(cluster)
        servers = [await timed.server() for _ in range(2)]
        cluster.worker(CannedTools())
        await servers[0].register(QUICK)
        await servers[0].register(scheduled("0 * * * *"))
        row = await timed.planned(servers[0], HOURS[1])
        timed.clock.now = HOURS[1] + 20
        await asyncio.gather(
            *(server.starts._deal_with([row], timed.clock.now) for server in servers)
        )
        (begun,) = await timed.started(1)
        state = await timed.row()
        assert (state.last_execution_id, state.planned_at) == (begun.execution_id, HOURS[2])
        await cluster.end_of(begun.execution_id)

    clustered(test, tmp_path)


@pytest.mark.rule("START-2")
@pytest.mark.parametrize("dies", ["before", "claimed", "begun"])
def test_a_server_that_dies_around_a_start_loses_and_doubles_nothing(
    tmp_path: Path, dies: str
) -> None:
    async def test(cluster: Cluster) -> None:
        timed = Timed(cluster)
        first = await timed.server()
        cluster.worker(CannedTools())
        await first.register(QUICK)
        await first.register(scheduled("0 * * * *"))
        await timed.planned(first, HOURS[1])
        timed.clock.now = HOURS[1] + 20
        (row,) = await first.storage.triggers.take(timed.clock.now, timed.clock.now + 30_000, 5)
        document = await first.starts.trigger(row)
        if dies == "claimed":
            key = key_of(PATH, timestamp(HOURS[1]))
            await first.playbooks.claimed([key], key, triggered=True)
        if dies == "begun":
            await first.starts.start(document, timestamp(HOURS[1]), at=HOURS[1])
        await cluster.kill_server(first)
        second = await timed.server()
        await second.starts.look()
        assert (await timed.row()).planned_at == HOURS[1], "the dead one's, until its time is up"
        timed.clock.move(31)
        await second.starts.look()
        (begun,) = await timed.started(1)
        assert (await cluster.end_of(begun.execution_id)).status == "completed"
        assert (await timed.row()).last_execution_id == begun.execution_id
        assert len(await timed.started()) == 1

    clustered(test, tmp_path)


@pytest.mark.rule("START-3")
@pytest.mark.parametrize(
    ("catch_up", "limit", "wanted", "told"),
    [
        ("none", 100, [], "5 planned times came while no server ran (catch_up: none)"),
        ("last", 100, [5], "4 planned times came while no server ran (catch_up: last)"),
        ("all", 100, [1, 2, 3, 4, 5], None),
        ("all", 2, [4, 5], "3 planned times came while no server ran (catch_up: all)"),
    ],
)
def test_missed_times_are_caught_up_with_as_told(
    tmp_path: Path, catch_up: str, limit: int, wanted: list[int], told: str | None
) -> None:
    async def test(cluster: Cluster) -> None:
        timed = Timed(cluster)
        timed.clock.now = HOURS[5] + 600_000
        server = await timed.server()
        cluster.worker(CannedTools())
        await server.register(QUICK)
        await server.register(scheduled("0 * * * *", catch_up=catch_up, limit=limit))
        await timed.planned(server, HOURS[1])
        await server.starts.look()
        rows = await timed.started(len(wanted))
        at = [(await requested(cluster, row.execution_id)).payload["trigger"]["at"] for row in rows]
        assert at == [timestamp(HOURS[n]) for n in wanted]
        state = await timed.row()
        assert (state.skipped_why, state.planned_at) == (told, HOURS[6])
        for row in rows:
            await cluster.end_of(row.execution_id)

    clustered(test, tmp_path)


@pytest.mark.rule("START-3")
@pytest.mark.parametrize("overlap", ["allow", "skip", "queue", "cancel_old"])
def test_what_a_time_means_while_the_one_before_runs(tmp_path: Path, overlap: str) -> None:
    async def test(cluster: Cluster) -> None:
        timed = Timed(cluster)
        server = await timed.server()
        tools = CannedTools()
        gate = Gate(ok("there"))
        tools.answers["fetch"] = [gate, ok("again"), ok("more")]
        cluster.worker(tools)
        await server.register(SLOW)
        await server.register(scheduled("0 * * * *", overlap=overlap))
        await timed.planned(server, HOURS[1])
        timed.clock.now = server.starts._looked = HOURS[1] + 20
        await server.starts.look()
        (first,) = await timed.started(1)
        (held,) = await gate.held(1)
        server.starts._looked = timed.clock.now = HOURS[2] + 20
        await server.starts.look()
        state = await timed.row()
        if overlap == "allow":
            assert len(await timed.started(2)) == 2
            await gate.let_go(held)
        if overlap == "skip":
            assert state.skipped_why is not None
            assert f"execution {first.execution_id} still runs (overlap: skip)" in state.skipped_why
            assert state.planned_at == HOURS[3]
            await gate.let_go(held)
        if overlap == "queue":
            assert (state.waits_for, state.planned_at) == (first.execution_id, HOURS[2])
            await gate.let_go(held)
            await cluster.end_of(first.execution_id)
            timed.clock.move(2)
            await server.starts.look()
            assert (await timed.row()).waits_for is None
            assert len(await timed.started(2)) == 2
        if overlap == "cancel_old":
            assert (await cluster.end_of(first.execution_id)).status == "cancelled"
            assert len(await timed.started(2)) == 2
        for row in await timed.started():
            await cluster.end_of(row.execution_id)

    clustered(test, tmp_path)


@pytest.mark.rule("START-1")
def test_a_paused_trigger_starts_nothing_and_catches_up_with_nothing(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        from noetl.server.triggering import pause, remove, resume

        timed = Timed(cluster)
        server = await timed.server()
        cluster.worker(CannedTools())
        await server.register(QUICK)
        await server.register(scheduled("0 * * * *", catch_up="all"))
        await timed.planned(server, HOURS[1])
        assert (await pause(server.storage, PATH)).paused
        timed.clock.now = HOURS[3]
        await server.starts.look()
        assert not await timed.started()
        resumed = await resume(server.storage, PATH)
        assert resumed.planned_at is not None
        assert resumed.planned_at > resumed.since > HOURS[3]
        await remove(server.storage, PATH)
        assert await cluster.root.triggers.find(PATH) is None
        entry, fresh = await server.register(scheduled("0 * * * *", catch_up="all"))
        assert (entry.version, fresh) == (1, False)
        assert not (await timed.row()).paused, "registered again it starts again"

    clustered(test, tmp_path)


@pytest.mark.rule("START-1")
def test_why_nothing_was_started_is_told(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        timed = Timed(cluster)
        server = await timed.server()
        bad = trigger({"schedule": {"cron": "0 * * * *"}}, payload={"x": "{{ trigger.data.no }}"})
        await server.register(scheduled("0 * * * *", path="tests/missing"))
        await server.register(bad)
        for path in (PATH, "tests/missing"):
            await timed.planned(server, HOURS[1], path=path)
        timed.clock.now = HOURS[1] + 20
        await server.starts.look()
        assert "no playbook 'tests/scenario'" in (
            (await timed.row("tests/missing")).skipped_why or ""
        )
        await server.register(QUICK)
        await timed.planned(server, HOURS[1])
        timed.clock.move(1)
        await server.starts.look()
        assert "undefined" in ((await timed.row()).skipped_why or "")
        assert not await timed.started(), "a start that cannot be fills no list"

    clustered(test, tmp_path)


@pytest.mark.rule("START-1")
def test_a_path_is_a_playbook_or_a_trigger(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        await server.register(QUICK)
        with pytest.raises(ServerRefused, match="the path of a playbook"):
            await server.register(scheduled("0 * * * *", path="tests/scenario"))
        await server.register(scheduled("0 * * * *"))
        with pytest.raises(ServerRefused, match="the path of a trigger"):
            await server.register(QUICK.replace("tests/scenario", PATH))
        with pytest.raises(PlaybookRejected):
            await server.register(scheduled("0 0 31 2 *", path="tests/never"))
        with pytest.raises(PlaybookRejected) as refused:
            await server.execute(path=PATH, payload={})
        assert [one.code for one in refused.value.findings] == ["no-playbook"]

    clustered(test, tmp_path)


@pytest.mark.rule("START-1")
def test_a_new_version_begins_anew_and_an_old_text_changes_nothing(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        timed = Timed(cluster)
        server = await timed.server()
        await server.register(scheduled("0 * * * *"))
        before = await timed.planned(server, HOURS[1])
        await server.register(scheduled("0 * * * *"))
        assert await timed.row() == before
        entry, fresh = await server.register(scheduled("30 * * * *"))
        after = await timed.row()
        assert (entry.version, fresh, after.version) == (2, True, 2)
        assert after.planned_at is not None
        assert after.planned_at > HOURS[1]
        assert not await server.storage.triggers.settle(before, replace(before, planned_at=7))

    clustered(test, tmp_path)


@pytest.mark.rule("START-3")
def test_many_that_are_due_at_once_do_not_keep_others_waiting(tmp_path: Path) -> None:
    """A few at once; whatever else runs has its turns between them, and none is forgotten."""

    async def test(cluster: Cluster) -> None:
        timed = Timed(cluster)
        server = await timed.server()
        cluster.worker(CannedTools())
        await server.register(QUICK)
        for number in range(200):
            path = f"tests/t{number:03}"
            await server.register(scheduled("0 * * * *", path=path))
            await timed.planned(server, HOURS[1], path=path)
        timed.clock.now = HOURS[1] + 1000
        looking = asyncio.create_task(server.starts.look())
        others = 0
        while not looking.done():
            beside = await server.execute(path="tests/scenario", payload={})
            assert (await cluster.end_of(beside.execution_id)).status == "completed"
            others += 1
            await asyncio.sleep(0)
        assert await looking == 200
        assert others >= 30, f"{others}: they come one after the other, each within a few starts"
        rows = await timed.started(200 + others)
        assert len(rows) == 200 + others
        for row in rows:
            await cluster.end_of(row.execution_id)

    clustered(test, tmp_path)


@pytest.mark.rule("START-3")
def test_a_clock_that_is_set_starts_nothing_twice(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        timed = Timed(cluster)
        server = await timed.server()
        cluster.worker(CannedTools())
        await server.register(QUICK)
        await server.register(scheduled("0 * * * *", catch_up="none"))
        await timed.planned(server, HOURS[1])
        timed.clock.now = HOURS[1] + 20
        server.starts._looked = HOURS[1]
        await server.starts.look()
        (first,) = await timed.started(1)
        timed.clock.move(-5 * HOUR)
        await server.starts.look()
        timed.clock.move(5 * HOUR)
        await server.starts.look()
        assert len(await timed.started()) == 1, "back, and forth again"
        timed.clock.now = HOURS[6] + 120_000
        await server.starts.look()
        state = await timed.row()
        assert len(await timed.started()) == 1, "what a jump leaps over was missed"
        assert state.planned_at == HOURS[7]
        assert state.skipped_why is not None
        await cluster.end_of(first.execution_id)

    clustered(test, tmp_path)


@pytest.mark.rule("START-2")
def test_a_log_that_is_away_is_tried_again(tmp_path: Path, monkeypatch: Any) -> None:
    async def test(cluster: Cluster) -> None:
        timed = Timed(cluster)
        server = await timed.server()
        cluster.worker(CannedTools())
        await server.register(QUICK)
        await server.register(scheduled("0 * * * *"))
        await timed.planned(server, HOURS[1])
        timed.clock.now = HOURS[1] + 20
        claim = server.storage.keys.claim

        async def away(*_: Any) -> Any:
            raise LogUnavailable("the log is away")

        monkeypatch.setattr(server.storage.keys, "claim", away)
        with pytest.raises(LogUnavailable):
            await server.starts.look()
        monkeypatch.setattr(server.storage.keys, "claim", claim)
        assert (await timed.row()).planned_at == HOURS[1]
        timed.clock.move(31)
        await server.starts.look()
        (row,) = await timed.started(1)
        await cluster.end_of(row.execution_id)
        await turns()

    clustered(test, tmp_path)


@pytest.mark.rule("START-2")
def test_a_trigger_that_breaks_holds_up_no_other(tmp_path: Path, monkeypatch: Any) -> None:
    async def test(cluster: Cluster) -> None:
        timed = Timed(cluster)
        server = await timed.server()
        cluster.worker(CannedTools())
        await server.register(QUICK)
        for path in ("tests/a", "tests/b"):
            await server.register(scheduled("0 * * * *", path=path))
            await timed.planned(server, HOURS[1], path=path)
        timed.clock.now = HOURS[1] + 20
        start = server.starts.start

        async def breaks(document: Any, *given: Any, **more: Any) -> Any:
            if document.path == "tests/a":
                raise ZeroDivisionError
            return await start(document, *given, **more)

        monkeypatch.setattr(server.starts, "start", breaks)
        await server.starts.look()
        (row,) = await timed.started(1)
        assert (await timed.row("tests/b")).last_execution_id == row.execution_id
        assert any("'tests/a' is tried again later" in said for said in cluster.said)
        monkeypatch.setattr(server.starts, "start", start)
        timed.clock.move(31)
        await server.starts.look()
        for row in await timed.started(2):
            await cluster.end_of(row.execution_id)

    clustered(test, tmp_path)


@pytest.mark.rule("START-3")
def test_an_interval_beyond_the_calendar_spoils_no_list(tmp_path: Path, monkeypatch: Any) -> None:
    """As an older release took it: shown with its reason, it does not fire, and it can go."""

    async def test(cluster: Cluster) -> None:
        timed = Timed(cluster)
        server = await timed.server()
        cluster.worker(CannedTools())
        await server.register(QUICK)
        limits = cast("dict[str, Field]", trigger_blocks.SCHEDULE.fields)
        with monkeypatch.context() as older:
            older.setitem(limits, "every", replace(limits["every"], type=Number(minimum=1)))
            await server.register(scheduled(every=1e15, path="tests/far"))
        triggering.DOCUMENTS.clear()
        await server.register(scheduled("0 * * * *"))
        await timed.planned(server, HOURS[1])
        questions = PlaneQuestions(server)
        listed = {one.path: one for one in (await questions.triggers(kind="schedule")).triggers}
        assert listed["tests/far"].planned_at is None
        assert "beyond the calendar" in (listed["tests/far"].skipped_why or "")
        assert "every" in ((await questions.trigger("tests/far")).problem or "")
        timed.clock.now = HOURS[1] + 20
        await server.starts.look()
        (row,) = await timed.started(1)
        assert (await timed.row(PATH)).last_execution_id == row.execution_id
        await cluster.end_of(row.execution_id)
        await triggering.remove(server.storage, "tests/far")

    clustered(test, tmp_path)
