"""What a worker says to its servers arrives, whatever is lost on the way and whoever dies."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.canned import CannedTools, Silence
from tests.support.cluster import Cluster, Cut, clustered, is_claimed, turns, until
from tests.support.direct_link import DirectLink
from tests.support.scenario import Gate, ok
from tests.support.steps import call, loop, otherwise, playbook, step

from noetl import __version__
from noetl.errors import ServerAway
from noetl.messages import events as e
from noetl.messages.codec import decode_events, encode
from noetl.ports.commit import Commit
from noetl.ports.event_log import PrintedLine
from noetl.ports.link import (
    Answer,
    Call,
    Hold,
    Link,
    OwnerWanted,
    PlaybookWanted,
    Question,
    Reply,
    Sent,
    Verdict,
)
from noetl.ports.session import PartLost
from noetl.server.library import plan_from
from noetl.worker import wire as wire_module
from noetl.worker import work_loop
from noetl.worker.outbox import Pending
from noetl.worker.session import HeldPart, WireSession
from noetl.worker.wire import ASKED_AT_ONCE

ONE = playbook(step("first", call("fetch")))


class Line:
    """A line to the servers of a cluster; a test overrides what goes wrong on it."""

    def __init__(self, cluster: Cluster) -> None:
        self.link: Link = DirectLink(cluster.exchange, poll=0.05, patience=2.0)
        self.ask = self.link.ask
        self.wake = self.link.wake
        self.close = self.link.close

    async def call(self, server: str, call: Call) -> Answer:
        return await self.link.call(server, call)


def session_over(link: Any) -> WireSession:
    me = Call(worker="w", pool="default", version=__version__, slots=10)
    return WireSession(link, me=me, plan_of=plan_from)


# ── answers that are lost ────────────────────────────────────────────────────────────────────


class LosesAnswers(Line):
    """The server hears every report that writes to ctx; its first answer is lost."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.lost: set[tuple[Hold, int]] = set()

    async def call(self, server: str, call: Call) -> Answer:
        answer = await self.link.call(server, call)
        writes = {(sent.hold, sent.after) for sent in call.reports if _writes(sent)}
        if writes - self.lost:
            self.lost |= writes
            raise ServerAway("the answer is lost")
        return answer


def _writes(sent: Sent) -> bool:
    events = decode_events(bytes(sent.events))
    return any(isinstance(event, e.TaskDone) and event.set_ctx for event in events)


@pytest.mark.rule("WRK-1", "LOOP-5")
def test_a_refused_write_is_told_again_when_its_answer_was_lost(tmp_path: Path) -> None:
    """Else the iteration goes on with a write that never was."""

    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        await cluster.server()
        line = LosesAnswers(cluster)
        cluster.worker(tools, link=line)
        writes = call("write", otherwise(set_ctx={"same": "{{ iter.index }}"}))
        looped = loop([1, 2], mode="parallel", on_failure="continue")
        text = playbook(step("each", writes, call("after"), loop=looped))
        execution = await cluster.run(text)
        assert line.lost
        events = await cluster.events(execution.execution_id)
        ends = Counter(type(event).__name__ for event in events)
        assert (ends["IterationDone"], ends["IterationFailed"]) == (1, 1)
        made = Counter(one.label for one in tools.calls)
        assert made == {"write": 2, "after": 1}, "the one whose write was refused goes no further"

    clustered(test, tmp_path)


# ── gaps ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_report_waits_a_minute_for_the_one_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By time, not by tries: the one before may be on its way to another server."""
    now = 1000.0
    monkeypatch.setattr("noetl.worker.session.time.monotonic", lambda: now)
    session = session_over(Cut())
    session.worker = Any  # type: ignore[assignment]
    outbox = session.wire.outbox("s")
    sent = Sent(hold=Hold("x1", "4.0", 0, 1), after=3, events=msgspec.Raw(b"[]"))
    pending = Pending(1, sent, Commit())
    session.waiting = 1
    for _ in range(200):
        session.judge(outbox, pending, Verdict("gap"))
        assert outbox.failed.pop() is pending
        now += 0.29
    assert not pending.commit.done()
    now += 60.0
    session.judge(outbox, pending, Verdict("gap"))
    assert isinstance(pending.commit.exception(), PartLost)
    assert (session.waiting, outbox.failed) == (0, [])


# ── who decides now ──────────────────────────────────────────────────────────────────────────


class SlowToSay(Cut):
    """Who owns an execution is answered when the test says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.open = asyncio.Event()

    async def ask(self, question: Question, server: str | None = None) -> Reply:
        del server
        assert isinstance(question, OwnerWanted)
        self.asked.append(question.execution_id)
        await self.open.wait()
        return Reply(value=msgspec.Raw(encode({"server": "new", "finished": False})))


async def test_owners_are_asked_for_side_by_side() -> None:
    """After a take-over of many executions: one by one would outlast their leases."""
    line = SlowToSay()
    session = session_over(line)
    holds = [Hold(f"x{number}", "4.0", 0, 1) for number in range(3 * ASKED_AT_ONCE)]
    for hold in holds:
        session.holds[hold] = HeldPart("old", 5.0)
    following = asyncio.ensure_future(session.wire.follow({hold.execution_id for hold in holds}))
    await turns()
    assert len(line.asked) == ASKED_AT_ONCE
    line.open.set()
    await following
    assert len(line.asked) == len(holds)
    assert {held.server for held in session.holds.values()} == {"new"}
    for chore in session.wire._chores:
        chore.cancel()


# ── draining ─────────────────────────────────────────────────────────────────────────────────


class HangsAt(Line):
    """Calls to one server are never answered, once it hangs."""

    server = ""

    async def call(self, server: str, call: Call) -> Answer:
        if server == self.server:
            await asyncio.get_running_loop().create_future()
        return await self.link.call(server, call)


@pytest.mark.rule("WRK-2")
def test_a_drain_gives_back_whatever_else_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report to a server that hangs must not keep parts of another one from being returned."""
    monkeypatch.setattr(work_loop, "LAST_WORDS", 0.05)

    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate(ok(1))
        hangs, lives = await cluster.server(), await cluster.server()
        line = HangsAt(cluster)
        tools.answers["fetch"] = [gate, Silence()]
        worker = cluster.worker(tools, link=line)
        first = await cluster.start(ONE)
        (key,) = await gate.held(1)
        cluster.servers.reverse()
        second = await cluster.start(ONE)
        await until(lambda: len(tools.calls) == 2)
        await until(lambda: len(worker.session.holds) == 2)
        await until(lambda: not worker.session.waiting)
        line.server = hangs.name
        await gate.let_go(key)
        await until(lambda: worker.session.waiting)
        await worker.drain(0.0)
        assert lives.dispatcher.leases.of_execution(second) == []
        events = await cluster.events(second)
        assert [x.returned for x in events if isinstance(x, e.LeaseExpired)] == [True]
        line.server = ""
        cluster.workers.remove(worker)
        cluster.worker(CannedTools())
        await cluster.kill_server(hangs)
        for execution_id in (first, second):
            assert (await cluster.end_of(execution_id)).status == "completed"

    clustered(test, tmp_path)


# ── beginning ────────────────────────────────────────────────────────────────────────────────


class Illegible(Line):
    """Playbooks arrive in a form that nobody foresaw."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.ask = self._ask

    async def _ask(self, question: Question, server: str | None = None) -> Reply:
        if isinstance(question, PlaybookWanted):
            return Reply(value=msgspec.Raw(b"[]"))
        return await self.link.ask(question, server)


@pytest.mark.rule("WRK-1")
def test_a_part_that_cannot_even_begin_fails_with_the_reason(tmp_path: Path) -> None:
    """Else it is renewed for ever, and nobody runs it."""

    async def test(cluster: Cluster) -> None:
        await cluster.server()
        cluster.worker(CannedTools(), link=Illegible(cluster))
        execution = await cluster.run(ONE)
        assert execution.status == "failed"
        assert execution.error is not None
        assert execution.error["kind"] == "internal"
        assert "TypeError" in execution.error["message"]

    clustered(test, tmp_path)


class Lost(Line):
    """The lease under which the playbook is first asked for has gone to somebody else."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.ask = self._ask
        self.lost: Hold | None = None

    async def _ask(self, question: Question, server: str | None = None) -> Reply:
        if isinstance(question, PlaybookWanted):
            self.lost = self.lost or question.hold
            if question.hold == self.lost:
                return Reply(error={"code": "refused", "message": "not the lease that it names"})
        return await self.link.ask(question, server)


@pytest.mark.rule("WRK-1")
@pytest.mark.parametrize("count", [1, 3])
def test_a_lease_that_was_lost_fails_neither_its_part_nor_another(
    count: int, tmp_path: Path
) -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.server()
        begun = [await cluster.start(ONE) for _ in range(count)]
        line = Lost(cluster)
        cluster.worker(CannedTools(), link=line)
        for execution_id in begun:
            assert (await cluster.end_of(execution_id)).status == "completed"
        assert line.lost is not None

    clustered(test, tmp_path, ttl=0.5)


# ── printed lines ────────────────────────────────────────────────────────────────────────────


def printed(execution_id: str, text: str) -> PrintedLine:
    return PrintedLine(
        execution_id=execution_id,
        step="first",
        task_run_id="4.0.1",
        attempt=1,
        at=0,
        stream="stdout",
        text=text,
    )


def test_lines_for_a_server_that_died_go_to_the_new_owner(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate(ok(1))
        tools.answers["fetch"] = [gate]
        first = await cluster.server()
        worker = cluster.worker(tools)
        execution_id = await cluster.start(ONE)
        (key,) = await gate.held(1)
        await until(lambda: is_claimed(first, execution_id))
        await cluster.kill_server(first)
        worker.session.wire.keep(printed(execution_id, "after its death"))
        await cluster.server()
        await gate.let_go(key)
        assert (await cluster.end_of(execution_id)).status == "completed"
        lines = await cluster.root.printed.read(execution_id)
        assert [line.text for line in lines] == ["after its death"]

    clustered(test, tmp_path)


def test_lines_arrive_while_their_task_runs(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate(ok(1))
        tools.answers["fetch"] = [gate]
        server = await cluster.server()
        worker = cluster.worker(tools)
        execution_id = await cluster.start(ONE)
        (key,) = await gate.held(1)
        await until(lambda: is_claimed(server, execution_id))
        worker.session.wire.keep(printed(execution_id, "still at it"))
        async with asyncio.timeout(600):
            while not (lines := await cluster.root.printed.read(execution_id)):
                await asyncio.sleep(0)
        assert [line.text for line in lines] == ["still at it"]
        await gate.let_go(key)
        assert (await cluster.end_of(execution_id)).status == "completed"

    clustered(test, tmp_path)


async def test_lines_that_no_server_takes_are_dropped_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire_module, "MOST_LINES", 10)
    said: list[str] = []
    me = Call(worker="w", pool="default", version=__version__)
    wire = WireSession(Cut(), me=me, plan_of=plan_from, says=said.append).wire
    wire.questions.where["x1"] = "dead"
    for number in range(25):
        wire.keep(printed("x1", str(number)))
    assert wire.lines_dropped == 15
    assert [line.text for line in wire._lines] == [str(number) for number in range(15, 25)]
    assert len(said) == 2


# ── leases ───────────────────────────────────────────────────────────────────────────────────


class LosesReports(Line):
    """No report arrives as long as it lasts; whoever only renews is heard."""

    broken = False

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.beats = 0

    async def call(self, server: str, call: Call) -> Answer:
        if self.broken and call.reports:
            raise ServerAway("the line recovers")
        self.beats += self.broken and bool(call.holds)
        return await self.link.call(server, call)


@pytest.mark.rule("WRK-1")
def test_leases_are_renewed_while_a_line_recovers(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gates = CannedTools(), [Gate(ok(1)), Gate(ok(2))]
        tools.answers["fetch"] = list(gates)
        server = await cluster.server()
        line = LosesReports(cluster)
        worker = cluster.worker(tools, link=line)
        begun = [await cluster.start(ONE), await cluster.start(ONE)]
        keys = [(await gate.held(1))[0] for gate in gates]
        await until(lambda: all(is_claimed(server, one) for one in begun))
        line.broken = True
        await gates[0].let_go(keys[0])
        outbox = worker.session.wire.outbox(server.name)
        await until(lambda: outbox.recovering)
        await until(lambda: line.beats > 12)  # longer than a lease, by its own measure
        assert worker.session.waiting
        line.broken = False
        await gates[1].let_go(keys[1])
        for execution_id in begun:
            assert (await cluster.end_of(execution_id)).status == "completed"
            events = await cluster.events(execution_id)
            assert not any(isinstance(event, e.LeaseExpired) for event in events)
        assert len(tools.calls) == 2

    clustered(test, tmp_path, ttl=0.3)
