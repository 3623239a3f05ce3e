"""A log proves itself; one that was changed, or that lost a body, does not."""

from typing import Any

import pytest
from tests.support.plans import planned
from tests.support.proofs import verify_all
from tests.support.scenario import Gate, Scenario, ok, scenario
from tests.support.steps import (
    arc,
    call,
    loop,
    nested,
    noop,
    otherwise,
    playbook,
    sets,
    step,
    task,
    when,
)

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.memory.storage import MemoryStorage
from noetl.control.decide import decide
from noetl.control.execution import Execution
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.codec import decode_events, encode_events
from noetl.messages.reference import Reference
from noetl.messages.wait_events import WaitStarted
from noetl.playbook.load import load_valid
from noetl.playbook.plan import make_plan
from noetl.ports.event_log import LogRow
from noetl.ports.result_store import ResultStore
from noetl.server.verify import Differs, Verified, input_of, verify

RETRY = when("outcome.status == 'error'", "retry", attempts=3)
STORY = (
    step("start", sets("a", x=1), arcs=[arc("each"), arc("gone")], mode="inclusive"),
    step(
        "each",
        sets("add", total="{{ iter.n }}"),
        loop=loop([1, 2, 3], mode="parallel", reduce={"total": "sum"}),
        arcs=[arc("inner")],
    ),
    step("inner", nested("all", loop([1, 2]), noop("x")), arcs=[arc("done", n="{{ ctx.total }}")]),
    step("done", noop("rest")),
    step("gone", sets("y", y=2)),
)


async def proof(of: Scenario) -> Verified:
    return await verify(of.home.log, of.home.playbooks, of.results, "x1")


def change(of: Scenario, row: int, to: Any) -> None:
    """Put other events into a row of the log."""
    rows = of.home.tables.decisions["x1"]
    old = rows[row]
    events = to(decode_events(old.events))
    rows[row] = LogRow(old.first, old.last, old.at, encode_events(events))


async def no_body(reference: Reference) -> None:
    raise AssertionError(f"nobody needs {reference}")


def finished(*steps: Any, **roots: Any) -> Scenario:
    told = scenario(*steps, **roots)
    told.run()
    return told


@pytest.mark.rule("EVT-5")
def test_a_whole_story_proves_itself() -> None:
    told = finished(*STORY)
    [row] = told.home.tables.rows.values()
    assert row.status == "completed"


@pytest.mark.rule("EVT-5")
async def test_a_log_that_grows_meanwhile_is_no_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = scenario(*STORY)
    async with told.running() as (_, active):
        await active.finished
    read, pages = told.home.log.read, 0

    async def growing(execution_id: str, *, after: int = 0, limit: int = 1000) -> list[LogRow]:
        nonlocal pages
        rows = [*await read(execution_id, after=after, limit=limit)]
        pages += limit > 1
        return rows[:-1] if limit > 1 and pages == 1 else rows  # the last one is not there yet

    monkeypatch.setattr(told.home.log, "read", growing)
    found = await proof(told)
    assert found.ok, found.message
    assert found.rows == len(told.home.tables.decisions["x1"]) - 1


@pytest.mark.rule("EVT-5")
@pytest.mark.parametrize("number", range(8))
async def test_an_event_that_does_not_follow_is_found(number: int) -> None:
    told = scenario(*STORY)
    async with told.running() as (_, active):
        await active.finished
    assert (await proof(told)).ok
    rows = told.home.tables.decisions["x1"]
    row = number % len(rows)
    change(told, row, lambda events: events[:-1])
    found = await proof(told)
    assert not found.ok
    assert found.rows <= row
    assert found.message.startswith("event ")
    assert "expected: " in found.message
    assert "found:" in found.message


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"to": "gone"}, "does not follow"),
        ({"arc": 1}, "does not follow"),
        ({"step": "done"}, "does not follow"),
    ],
)
async def test_a_changed_field_is_shown(changes: dict[str, Any], said: str) -> None:
    import msgspec

    told = scenario(step("start", noop("a"), arcs=[arc("done")]), step("done", noop("b")))
    async with told.running() as (_, active):
        await active.finished

    def forged(events: list[e.Event]) -> list[e.Event]:
        return [
            msgspec.structs.replace(event, **changes) if isinstance(event, e.NextFired) else event
            for event in events
        ]

    rows = told.home.tables.decisions["x1"]
    [row] = [n for n, one in enumerate(rows) if b"next.fired" in one.events]
    change(told, row, forged)
    found = await proof(told)
    assert not found.ok
    assert said in found.message
    assert "next.fired" in found.message


@pytest.mark.rule("RES-4")
async def test_a_lost_body_makes_it_unverifiable() -> None:
    limits = {"kind": "local", "spec": {"policy": {"limits": {"max_payload_bytes": 1000}}}}
    told = scenario(
        step("start", call("get"), arcs=[arc("done", "event.result | length > 3")]),
        step("done", noop("rest")),
        executor=limits,
    ).answers("get", ok("x" * 5000))
    async with told.running() as (_, active):
        await active.finished
    assert (await proof(told)).ok
    told.objects.kept.clear()
    found = await proof(told)
    assert not found.ok
    assert found.message.startswith("unverifiable: the body memory:x1/")


async def test_a_large_payload_is_moved_out_again() -> None:
    limits = {"kind": "local", "spec": {"policy": {"limits": {"max_payload_bytes": 1000}}}}
    told = scenario(step("start", noop("a")), executor=limits, workload={"text": ""})
    async with told.running({"text": "x" * 5000}) as (_, active):
        await active.finished
    assert (await proof(told)).ok


async def test_an_execution_in_flight_proves_itself() -> None:
    gate = Gate()
    told = scenario(step("start", call("get", RETRY))).answers("get", gate)
    async with told.running() as (_, active):
        [held] = await gate.held(1)
        found = await proof(told)
        assert found.ok
        assert found.rows == len(told.home.tables.decisions["x1"])
        await gate.let_go(held)
        await active.finished


async def test_every_execution_of_a_home() -> None:
    told = scenario(step("start", noop("a")))
    async with told.running() as (_, active):
        await active.finished
    home = told.home
    found = await verify_all(home.log, home.playbooks, told.results, home.executions)
    assert {name: one.ok for name, one in found.items()} == {"x1": True}


@pytest.mark.parametrize(
    ("event", "given"),
    [
        (e.ExecutionCancelled(reason="why"), r.CancelExecution(reason="why")),
        (e.ExecutionCancelled(by="timeout"), r.TimeIsUp(seconds=7.0)),
        (e.ExecutionPaused(reason="tea"), r.PauseExecution(reason="tea")),
        (e.ExecutionResumed(), r.ResumeExecution()),
        (
            e.LeaseExpired(step="a", step_run_id="4.0", epoch=2, part=1),
            r.LeaseLost(step_run_id="4.0", epoch=2, part=1),
        ),
    ],
)
async def test_orders_are_read_back(event: e.Event, given: r.Input) -> None:
    limits = {"kind": "local", "spec": {"policy": {"limits": {"timeout": 7}}}}
    plan = planned(step("a", noop("x", otherwise())), executor=limits)
    assert await input_of(Execution(execution_id="x1"), plan, [event], no_body) == given


@pytest.mark.parametrize(
    "event",
    [
        e.TokenCreated(token_id="1.0", step="a"),
        e.StepDone(step="a", step_run_id="99.0"),
        e.WorkflowFinished(status="completed"),
    ],
)
async def test_what_no_input_begins_with_is_refused(event: e.Event) -> None:
    plan = planned(step("a", noop("x")))
    with pytest.raises(Differs, match="event 1: "):
        await input_of(Execution(execution_id="x1"), plan, [event], no_body)


@pytest.mark.rule("EVT-5", "NEXT-8")
async def test_a_run_that_is_stopped_while_it_begins_to_wait() -> None:
    """The report has come when the execution is cancelled: the server tells the end in its row."""
    text = playbook(step("start", task("ask", "wait", signal="go")))
    plan = make_plan(load_valid(text), text)
    state = Execution(execution_id="x1")
    ids: dict[str, Any] = {"step": "start", "step_run_id": "4.0"}
    task_ids: dict[str, Any] = {**ids, "task": "ask", "task_run_id": "4.1"}
    report: list[e.Event] = [
        e.StepStarted(**ids),
        e.TaskStarted(**task_ids, kind="wait"),
        WaitStarted(**task_ids, awaits=[{"by": "signal", "name": "go"}]),
        e.TaskSuspended(**task_ids, reason="wait"),
    ]
    given: list[r.Input] = [
        r.StartExecution(execution_id="x1", path=plan.path, digest=plan.digest),
        r.CancelExecution(),
        r.Report(step_run_id="4.0", part=0, epoch=1, worker="w", events=report, after=0),
    ]
    home = MemoryStorage()
    await home.playbooks.keep(plan.digest, plan.path, text, None)
    for one in given:
        expected = state.seq
        events = decide(plan, state, one, at=1)
        assert isinstance(events, list), "nothing here is large"
        home.tables.decisions.setdefault("x1", []).append(
            LogRow(expected + 1, state.seq, 1, encode_events(events))
        )
    assert state.finished
    proved = await verify(home.log, home.playbooks, ResultStore(MemoryObjectStore()), "x1")
    assert proved.ok, proved.message
