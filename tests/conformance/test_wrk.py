"""WRK: workers of other processes claim, hold leases, report, are lost and drain."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.canned import CannedTools, Silence
from tests.support.cluster import PATIENCE, Cluster, clustered, until
from tests.support.direct_link import DirectLink
from tests.support.scenario import Gate, ok
from tests.support.steps import arc, call, loop, otherwise, playbook, step, when

from noetl import __version__
from noetl.messages import events as e
from noetl.messages.codec import encode_events
from noetl.messages.outcome import failed
from noetl.ports.link import SPEAKS, Answer, Call, Hold, Question, Reply, Sent

CHAIN = playbook(
    step("first", call("fetch"), call("store"), arcs=[arc("second")]),
    step("second", call("tell")),
)


def labels(*tools: CannedTools) -> Counter[str]:
    return Counter(made.label for one in tools for made in one.calls)


@pytest.mark.rule("WRK-1")
def test_parts_are_claimed_by_a_worker_and_recorded_with_its_epoch(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        await cluster.server()
        worker = cluster.worker(tools)
        execution = await cluster.run(CHAIN)
        assert execution.status == "completed"
        assert labels(tools) == {"fetch": 1, "store": 1, "tell": 1}
        events = await cluster.events(execution.execution_id)
        claims = [event for event in events if isinstance(event, e.TokenClaimed)]
        assert [(claim.step, claim.worker) for claim in claims] == [
            ("first", worker.name),
            ("second", worker.name),
        ]
        await until(lambda: not worker.session.holds)

    clustered(test, tmp_path)


@pytest.mark.rule("WRK-1", "TASK-9")
def test_a_lost_worker_is_replaced_after_its_last_recorded_task(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        stuck, fresh = CannedTools(), CannedTools()
        stuck.answers["store"] = [Silence()]
        await cluster.server()
        first = cluster.worker(stuck)
        execution_id = await cluster.start(CHAIN)
        await until(lambda: labels(stuck)["store"] == 1)
        await cluster.kill_worker(first)
        second = cluster.worker(fresh)
        execution = await cluster.end_of(execution_id)
        assert execution.status == "completed"
        assert labels(stuck, fresh) == {"fetch": 1, "store": 2, "tell": 1}
        events = await cluster.events(execution_id)
        (expired,) = [event for event in events if isinstance(event, e.LeaseExpired)]
        assert (expired.worker, expired.returned) == (first.name, False)
        epochs = [event.epoch for event in events if isinstance(event, e.TokenClaimed)]
        assert epochs[1] > epochs[0]
        assert second.name in {
            event.worker for event in events if isinstance(event, e.TokenClaimed)
        }

    clustered(test, tmp_path, ttl=0.3)


class Tunnel:
    """A line that can be stopped up for a while: what is said then arrives when it opens (T2)."""

    def __init__(self, link: DirectLink) -> None:
        self._link = link
        self.open = asyncio.Event()
        self.open.set()

    async def call(self, server: str, call: Call) -> Answer:
        await self.open.wait()
        return await self._link.call(server, call)

    async def ask(self, question: Question, server: str | None = None) -> Reply:
        await self.open.wait()
        return await self._link.ask(question, server)

    async def wake(self, worker: str, pool: str, *, hungry: bool) -> str:
        await self.open.wait()
        return await self._link.wake(worker, pool, hungry=hungry)

    async def close(self) -> None:
        self.open.set()


@pytest.mark.fault("T1")
@pytest.mark.rule("WRK-1", "EVT-3")
def test_what_a_worker_reports_after_its_lease_is_refused(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        slow, quick = CannedTools(), CannedTools()
        gate = Gate(ok("late"))
        slow.answers["fetch"] = [gate]
        await cluster.server()
        tunnel = Tunnel(DirectLink(cluster.exchange, poll=0.05, patience=2.0))
        zombie = cluster.worker(slow, link=tunnel)
        execution_id = await cluster.start(CHAIN)
        (key,) = await gate.held(1)
        tunnel.open.clear()
        cluster.worker(quick)
        execution = await cluster.end_of(execution_id)
        before = await cluster.events(execution_id)
        await gate.let_go(key)
        tunnel.open.set()
        await until(lambda: not zombie.session.holds)
        assert await cluster.events(execution_id) == before
        assert execution.status == "completed"
        assert labels(slow) == {"fetch": 1}, "it goes no further than it had come"

    clustered(test, tmp_path, ttl=0.3)


@pytest.mark.rule("WRK-1")
def test_a_worker_that_lost_a_part_may_have_it_again(tmp_path: Path) -> None:
    """T2: the answer that says what is lost may grant the same part in its next epoch."""

    async def test(cluster: Cluster) -> None:
        tools, silence = CannedTools(), Silence()
        tools.answers["fetch"] = [silence, ok("again")]
        server = await cluster.server()
        cluster.worker(tools)
        execution_id = await cluster.start(CHAIN)
        await until(lambda: labels(tools)["fetch"] == 1)
        (lease,) = server.dispatcher.leases.all()
        server.dispatcher.keeper.end(lease)
        execution = await cluster.end_of(execution_id)
        assert (execution.status, silence.cancelled) == ("completed", 1)
        assert labels(tools) == {"fetch": 2, "store": 1, "tell": 1}

    clustered(test, tmp_path)


@pytest.mark.fault("T11")
@pytest.mark.rule("WRK-1")
def test_a_task_that_loses_three_workers_fails_its_run(tmp_path: Path) -> None:
    """T11."""

    async def test(cluster: Cluster) -> None:
        deadly = CannedTools()
        deadly.answers["fetch"] = [Silence()]
        await cluster.server()
        execution_id = await cluster.start(CHAIN)
        ended = asyncio.ensure_future(cluster.end_of(execution_id))
        deaths = 0
        while not ended.done():
            worker = cluster.worker(deadly)
            await until(lambda seen=deaths: labels(deadly)["fetch"] > seen or ended.done())
            if not ended.done():
                deaths += 1
                await cluster.kill_worker(worker)
        execution = ended.result()
        assert (deaths, execution.status) == (3, "failed")
        assert execution.error is not None
        assert execution.error["kind"] == "worker_lost"

    clustered(test, tmp_path, ttl=0.2)


@pytest.mark.fault("T10")
@pytest.mark.rule("WRK-1", "EVT-3")
def test_ten_deliveries_of_everything_leave_one_log(tmp_path: Path) -> None:
    """T10."""

    async def test(cluster: Cluster) -> None:
        cluster.exchange.copies = 10
        tools = CannedTools()
        await cluster.server()
        cluster.worker(tools)
        looped = playbook(
            step("many", call("do"), loop=loop("{{ range(20) | list }}"), arcs=[arc("after")]),
            step("after", call("tell")),
        )
        execution = await cluster.run(looped)
        assert execution.status == "completed"
        events = await cluster.events(execution.execution_id)
        done = Counter(event.task_run_id for event in events if isinstance(event, e.TaskDone))
        assert set(done.values()) == {1}
        assert len(done) == 21
        assert labels(tools) == {"do": 20, "tell": 1}, "no answer to a copy makes anybody do more"
        assert not any(isinstance(event, e.LeaseExpired) for event in events)

    clustered(test, tmp_path, ttl=2.0)


@pytest.mark.rule("WRK-2")
def test_a_worker_that_stops_lets_its_parts_end_and_takes_no_more(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        gate = Gate(ok(1))
        tools.answers["fetch"] = [gate]
        await cluster.server()
        worker = cluster.worker(tools)
        execution_id = await cluster.start(
            playbook(step("first", call("fetch"), arcs=[arc("b")]), step("b", call("tell")))
        )
        (key,) = await gate.held(1)
        draining = asyncio.ensure_future(worker.drain(PATIENCE))
        await until(lambda: worker.session.draining)
        await gate.let_go(key)
        await draining
        assert labels(tools) == {"fetch": 1}
        other = CannedTools()
        cluster.worker(other)
        execution = await cluster.end_of(execution_id)
        assert (execution.status, labels(other)) == ("completed", {"tell": 1})
        events = await cluster.events(execution_id)
        assert not any(isinstance(event, e.LeaseExpired) for event in events)

    clustered(test, tmp_path)


@pytest.mark.rule("WRK-2")
def test_what_does_not_end_in_time_is_given_back_and_not_counted_as_lost(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.server()
        execution_id = await cluster.start(CHAIN)
        for _ in range(4):  # more often than leases may be lost
            stuck = CannedTools()
            stuck.answers["store"] = [Silence()]
            worker = cluster.worker(stuck)
            await until(lambda stuck=stuck: labels(stuck)["store"] == 1)
            await worker.drain(0.0)
            cluster.workers.remove(worker)
        last = CannedTools()
        cluster.worker(last)
        execution = await cluster.end_of(execution_id)
        assert execution.status == "completed"
        assert labels(last) == {"store": 1, "tell": 1}, "fetch is recorded, and never run again"
        events = await cluster.events(execution_id)
        assert [x.returned for x in events if isinstance(x, e.LeaseExpired)] == [True] * 4

    clustered(test, tmp_path)


@pytest.mark.rule("WRK-1", "TASK-8")
def test_a_long_pause_is_given_back_and_taken_up_by_any_worker(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        tools.answers["fetch"] = [failed("http", "not yet", retryable=True), ok("there")]
        await cluster.server()
        worker = cluster.worker(tools)
        worker.worker.patience = 0.5
        retried = otherwise("retry", attempts=3, delay=2.5)
        text = playbook(step("first", call("fetch", when("outcome.status == 'ok'"), retried)))
        execution_id = await cluster.start(text)
        await until(lambda: labels(tools)["fetch"] == 1)
        await until(lambda: not worker.session.holds)
        await cluster.kill_worker(worker)
        other = CannedTools()
        other.answers["fetch"] = [ok("there")]
        cluster.worker(other)
        execution = await cluster.end_of(execution_id)
        assert execution.status == "completed"
        assert labels(other) == {"fetch": 1}
        assert other.calls[0].attempt == 2

    clustered(test, tmp_path)


@pytest.mark.rule("WRK-1", "LOOP-2")
def test_max_in_flight_is_held_across_workers(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        at_once, most = 0, 0

        async def count(made: Any) -> Any:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            for _ in range(5):
                await asyncio.sleep(0)
            at_once -= 1
            return ok(made.label)

        tools = [CannedTools(), CannedTools()]
        await cluster.server()
        for one in tools:
            one.answers["do"] = [count]
            cluster.worker(one)
        many = loop("{{ range(200) | list }}", mode="parallel", flight=8)
        execution = await cluster.run(playbook(step("many", call("do"), loop=many)))
        assert execution.status == "completed"
        assert labels(*tools) == {"do": 200}
        assert most <= 8

    clustered(test, tmp_path)


@pytest.mark.rule("WRK-1", "LOOP-5")
def test_colliding_writes_of_iterations_are_refused_over_the_wire(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        await cluster.server()
        cluster.worker(tools)
        many = loop("{{ [1, 2] }}", mode="parallel")
        writes = call("do", otherwise(set_ctx={"same": "{{ iter.index }}"}))
        execution = await cluster.run(playbook(step("many", writes, loop=many)))
        assert execution.status == "failed"
        assert execution.error is not None
        assert execution.error["cause"]["kind"] == "ctx_conflict"

    clustered(test, tmp_path)


@pytest.mark.rule("WRK-1", "NEXT-8")
def test_a_cancel_reaches_the_tool_of_a_worker_elsewhere(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        silence = Silence()
        tools.answers["fetch"] = [silence]
        server = await cluster.server()
        cluster.worker(tools)
        execution_id = await cluster.start(CHAIN)
        await until(lambda: labels(tools)["fetch"] == 1)
        await server.order(execution_id, "cancel", "enough")
        execution = await cluster.end_of(execution_id)
        assert (execution.status, silence.cancelled) == ("cancelled", 1)

    clustered(test, tmp_path)


@pytest.mark.rule("WRK-1", "NEXT-8")
def test_a_cancel_ends_what_no_worker_has_claimed(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        execution_id = await cluster.start(CHAIN)
        await server.order(execution_id, "cancel", "nobody came")
        assert (await cluster.end_of(execution_id)).status == "cancelled"

    clustered(test, tmp_path)


@pytest.mark.fault("T4")
@pytest.mark.rule("WRK-1")
def test_lost_wake_ups_cost_a_poll_and_no_more(tmp_path: Path) -> None:
    """T4."""

    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        server = await cluster.server()
        server.dispatcher.notifiers.clear()
        cluster.worker(tools)
        assert (await cluster.run(CHAIN)).status == "completed"

    clustered(test, tmp_path)


HOLD = Hold("{id}", "5.1", 0, 1)

STRANGE = {
    "not the worker's": e.CtxPatched(patch={"a": 1}),
    "another run": e.StepDone(step="first", step_run_id="99.1"),
    "no loop": e.IterationDone(
        step="first", step_run_id="{run}", index=0, iteration_id="x", result=1
    ),
}


@pytest.mark.rule("WRK-1", "EVT-4")
@pytest.mark.parametrize("name", [*STRANGE, "unreadable", "empty", "too large"])
def test_a_report_that_no_worker_would_send_is_refused(tmp_path: Path, name: str) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        execution_id = await cluster.start(CHAIN)
        call = Call(
            worker="odd", pool="default", version=__version__, speaks=SPEAKS, slots=1, free=1
        )
        answer = await server.dispatcher.answer(call)
        command = msgspec.json.decode(answer.grants[0].command)
        hold = Hold(execution_id, command["step_run_id"], 0, command["epoch"])
        sent = Sent(hold=hold, after=0, events=msgspec.Raw(strange_events(name, hold)))
        told = await server.dispatcher.answer(msgspec.structs.replace(call, reports=[sent], free=0))
        (verdict,) = told.verdicts
        assert verdict.state == "refused"
        assert verdict.reason
        tools = CannedTools()
        cluster.worker(tools)
        ended = await cluster.end_of(execution_id)
        if name != "too large":
            assert ended.status == "completed"
            return
        # The next worker's report would be no smaller: it fails once, with the true reason.
        assert ended.error is not None
        assert (ended.status, ended.error["kind"], tools.calls) == ("failed", "result", [])
        assert "above the limit" in ended.error["message"]

    clustered(test, tmp_path)


def strange_events(name: str, hold: Hold) -> bytes:
    if name == "unreadable":
        return b'[{"name": "task.done"}]'
    if name == "empty":
        return b"[]"
    if name == "too large":
        event: e.Event = e.StepDone(
            step="first", step_run_id=hold.step_run_id, result="x" * 2_000_000
        )
    else:
        event = STRANGE[name]
        if name == "no loop":
            event = msgspec.structs.replace(event, step_run_id=hold.step_run_id)
    return encode_events([event])


@pytest.mark.rule("WRK-1", "EVT-3")
def test_reports_are_taken_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        execution_id = await cluster.start(CHAIN)
        call = Call(
            worker="one", pool="default", version=__version__, speaks=SPEAKS, slots=1, free=1
        )
        answer = await server.dispatcher.answer(call)
        command = msgspec.json.decode(answer.grants[0].command)
        hold = Hold(execution_id, command["step_run_id"], 0, command["epoch"])
        ids: dict[str, Any] = {"step": "first", "step_run_id": hold.step_run_id}

        async def say(after: int, *events: e.Event) -> str:
            sent = Sent(hold=hold, after=after, events=msgspec.Raw(encode_events(events)))
            one = msgspec.structs.replace(call, free=0, reports=[sent])
            return (await server.dispatcher.answer(one)).verdicts[0].state

        started = e.StepStarted(**ids)
        run = f"{hold.step_run_id.partition('.')[0]}.1"
        first = e.TaskStarted(**ids, task="fetch", kind="http", task_run_id=run, attempt=1)
        assert await say(1, first) == "gap"
        assert await say(0, started) == "recorded"
        assert await say(0, started) == "known"
        assert await say(0, started, first) == "recorded"
        assert await say(1, first) == "known"
        assert await say(2, e.StepDone(**ids)) == "recorded"
        assert await say(2, e.StepDone(**ids)) == "refused"
        names = [type(event).__name__ for event in await cluster.events(execution_id)]
        assert names.count("StepStarted") == names.count("TaskStarted") == 1

    clustered(test, tmp_path)


class Faulty:
    """A line that fails in ways that no contract knows, a few times."""

    def __init__(self, link: DirectLink, faults: list[Exception]) -> None:
        self._link = link
        self._faults = faults
        self.ask = link.ask
        self.wake = link.wake
        self.close = link.close

    async def call(self, server: str, call: Call) -> Answer:
        if call.reports and self._faults:
            raise self._faults.pop()
        return await self._link.call(server, call)


@pytest.mark.rule("WRK-1")
def test_a_fault_of_the_line_loses_no_report(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        await cluster.server()
        wire = DirectLink(cluster.exchange, poll=0.05, patience=2.0)
        cluster.worker(tools, link=Faulty(wire, [ValueError("odd"), OSError("gone")]))
        execution = await cluster.run(CHAIN)
        assert execution.status == "completed"
        assert labels(tools) == {"fetch": 1, "store": 1, "tell": 1}

    clustered(test, tmp_path)
