"""EVT-1, OUT-1: what an event says of itself is true: who wrote it, how it ended, what it is of."""

import asyncio
from typing import Any

import msgspec
import pytest
from tests.support.canned import Silence
from tests.support.scenario import Ran, error, ok, scenario
from tests.support.steps import (
    arc,
    call,
    loop,
    nested,
    noop,
    otherwise,
    refuse,
    sets,
    step,
    task,
    when,
)

from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.codec import encode_events
from noetl.messages.envelope import envelope
from noetl.messages.filtering import wanted
from noetl.messages.outcome import Outcome
from noetl.node.local import LocalNode
from noetl.server.active import ActiveExecution


def told(ran: Ran, name: str, step: str | None = None) -> list[dict[str, Any]]:
    """The envelopes of the events of a name."""
    found = [
        envelope(raw, execution_id="x1", seq=seq, at=0, trace_id=None)
        for seq, raw in enumerate(msgspec.json.decode(encode_events(ran.events)), 1)
    ]
    return [one for one in found if one["name"] == name and step in (None, one["step"])]


def one(ran: Ran, name: str, step: str | None = None) -> dict[str, Any]:
    (found,) = told(ran, name, step)
    return found


# ── who wrote it ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("EVT-1", "TASK-6")
def test_the_end_of_a_step_is_told_by_whoever_ended_it() -> None:
    ran = scenario(step("start", arcs=[arc("work")]), step("work", call("ask"))).run()
    assert one(ran, "step.done", "start")["source"] == "server"
    assert one(ran, "step.done", "work")["source"] == "worker"
    assert "source" not in one(ran, "step.done", "start")["data"]


@pytest.mark.rule("EVT-1", "LOOP-10")
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
@pytest.mark.parametrize(("where", "source"), [("local", "worker"), ("distributed", "server")])
@pytest.mark.parametrize("fails", [False, True])
def test_the_end_of_a_loop_is_told_by_whoever_knew_it(
    mode: str, where: str, source: str, fails: bool
) -> None:
    made = scenario(step("start", call("ask"), loop=loop([1, 2], mode=mode, exec=where)))
    ran = made.answers("ask", error("http") if fails else ok(1)).run()
    assert one(ran, "step.failed" if fails else "loop.done")["source"] == source
    assert one(ran, "loop.started")["source"] == "server"


@pytest.mark.rule("EVT-1", "LOOP-7")
def test_a_loop_inside_a_task_is_the_workers_own() -> None:
    ran = scenario(step("start", nested("in", loop([1], iterator="m"), call("ask")))).run()
    assert one(ran, "loop.started")["source"] == "worker"
    assert one(ran, "loop.done")["source"] == "worker"


@pytest.mark.rule("EVT-1", "LOOP-8")
def test_a_loop_that_cannot_begin_is_ended_by_the_server() -> None:
    ran = scenario(step("start", noop("x"), loop=loop("{{ 5 }}"))).run()
    assert one(ran, "step.failed")["source"] == "server"


@pytest.mark.rule("EVT-1", "TASK-10")
@pytest.mark.parametrize("where", ["local", "distributed"])
def test_a_run_out_of_time_is_ended_by_whoever_watched_the_clock(where: str) -> None:
    looped = loop([1, 2], mode="parallel", exec=where)
    made = scenario(step("start", call("ask"), loop=looped, timeout=0.05))
    ran = made.answers("ask", Silence()).run()
    assert one(ran, "step.failed")["source"] == ("worker" if where == "local" else "server")


@pytest.mark.rule("EVT-1", "WRK-1")
def test_a_run_that_workers_are_lost_on_is_ended_by_the_server() -> None:
    async def lose(local: LocalNode, active: ActiveExecution) -> None:
        for epoch in (1, 2, 3):
            lost = r.LeaseLost(step_run_id="4.0", part=0, epoch=epoch, worker=f"w{epoch}")
            local.server.receive(active, lost)
        await asyncio.sleep(0)

    ran = scenario(step("start", call("ask"))).answers("ask", Silence()).act(lose)
    assert one(ran, "step.failed")["source"] == "server"
    assert {event["status"] for event in told(ran, "lease.expired")} == {"error"}


@pytest.mark.rule("EVT-1")
@pytest.mark.parametrize("field", ["returned", "uncounted"])
def test_a_lease_that_was_nobodys_loss_is_no_error(field: str) -> None:
    raw = {"name": "lease.expired", "step": "s", "step_run_id": "4.0", "epoch": 1, field: True}
    seen = envelope(raw, execution_id="x1", seq=1, at=0, trace_id=None)
    assert seen["status"] == "in_progress"


# ── how it ended ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("EVT-1", "TPL-3")
def test_what_fails_the_execution_is_no_success() -> None:
    broken = arc("y", "1 / 0 > 1")
    ran = scenario(step("start", noop("x"), arcs=[broken]), step("y", noop("z"))).run()
    assert one(ran, "next.evaluated")["status"] == "error"
    ran = scenario(step("start", noop("x")), workload={"a": "{{ 1 / 0 }}"}).run()
    assert one(ran, "playbook.request.evaluated")["status"] == "error"
    ran = scenario(step("start", noop("x"), admit=[refuse("1 / 0 > 1")])).run()
    assert one(ran, "policy.admit.evaluated")["status"] == "error"
    limits = {"spec": {"policy": {"limits": {"max_step_runs": 1}}}}
    ran = scenario(step("start", noop("x"), arcs=[arc("start")]), executor=limits).run()
    assert one(ran, "token.dropped")["status"] == "error"


@pytest.mark.rule("EVT-1", "TASK-4", "LOOP-5")
def test_a_task_that_its_policy_fails_is_no_success() -> None:
    ran = scenario(step("start", call("ask", otherwise("fail")))).answers("ask", ok(1)).run()
    assert one(ran, "task.done")["status"] == "error"
    looped = loop([1, 2], mode="parallel")
    ran = scenario(step("start", sets("put", k="{{ iter.n }}"), loop=looped)).run()
    assert [event["status"] for event in told(ran, "task.done")] == ["success", "error"]


# ── attempt and directive ────────────────────────────────────────────────────────────────────


@pytest.mark.rule("EVT-1", "TASK-9")
def test_every_task_event_has_its_attempt_and_directive() -> None:
    again = when("outcome.status == 'error'", "retry", attempts=2, delay=5)
    made = scenario(step("start", call("ask", again)))
    ran = made.answers("ask", error("http"), ok(1)).run()
    assert [one["data"]["attempt"] for one in told(ran, "task.started")] == [1, 2]
    done = [(one["data"]["attempt"], one["data"]["do"]) for one in told(ran, "task.done")]
    assert done == [(1, "retry"), (2, "continue")]
    waits = one(ran, "task.suspended")["data"]
    assert (waits["attempt"], waits["reason"]) == (2, "retry")


# ── what it is a part of ─────────────────────────────────────────────────────────────────────


@pytest.mark.rule("EVT-1", "EVT-0", "LOOP-7")
def test_events_name_what_they_are_a_part_of() -> None:
    inner = nested("in", loop([1], iterator="m"), call("ask"))
    ran = scenario(
        step("start", call("ask"), arcs=[arc("each")]), step("each", inner, loop=loop([1]))
    ).run()
    (first, second) = [event["step_run_id"] for event in told(ran, "step.scheduled")]
    assert one(ran, "token.created", "start")["parent_id"] is None
    assert one(ran, "token.created", "each")["parent_id"] == first
    assert one(ran, "task.done", "start")["parent_id"] == first
    outer, within = told(ran, "loop.iteration.started")
    deep, around = told(ran, "task.done", "each")
    assert outer["parent_id"] == second
    assert around["parent_id"] == outer["entity_id"]
    assert within["parent_id"] == around["entity_id"]
    assert deep["parent_id"] == within["entity_id"]
    assert {event["parent_id"] for event in told(ran, "loop.started")} == {
        None,
        around["entity_id"],
    }


# ── errors ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("OUT-1", "OUT-4")
@pytest.mark.parametrize("given", [{"kind": "mine"}, {}, None, "no luck"])
def test_the_error_of_a_plugin_has_what_a_policy_reads(given: Any) -> None:
    rule = when("outcome.error.retryable == false", "fail")
    made = scenario(step("start", call("ask", rule)))
    ran = made.answers("ask", Outcome(status="error", error=given)).run()
    found = ran.one(e.TaskDone).outcome["error"]
    assert isinstance(found["message"], str)
    assert found["retryable"] is False
    assert found["kind"] == ("mine" if given == {"kind": "mine"} else "internal")
    assert ran.error["retryable"] is False


# ── older names ──────────────────────────────────────────────────────────────────────────────


def story_of_everything() -> Ran:
    """Retries, a storage task, a loop with a failed iteration, a loop inside a task."""
    again = when("outcome.status == 'error'", "retry", attempts=2)
    pg = task("save", "postgres", command="insert into t values (1)", auth="db")
    inner = nested("in", loop([1], iterator="m"), noop("deep"))
    fails = call("flaky", when("iter.n == 2", "fail"))
    made = scenario(
        step("start", call("ask", again), pg, arcs=[arc("each")]),
        step("each", fails, inner, loop=loop([1, 2], on_failure="continue"), arcs=[arc("bad")]),
        step("bad", call("boom")),
    )
    made.answers("ask", error("http"), ok(1)).answers("boom", error("http"))
    return made.answers("save", ok([], pg={"rowcount": 1})).run()


FAILED = ["loop.iteration.failed each"]


@pytest.mark.rule("EVT-2")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("retry.started", ["task.started ask 2"]),
        ("retry.processed", ["task.done ask 2"]),
        ("sink.started", ["task.started save 1"]),
        ("sink.processed", ["task.done save 1"]),
        ("call.error", ["task.done ask 1", "task.done boom 1"]),
        ("step.finished", ["step.done start", "loop.done each", "step.failed bad"]),
        ("step.exit", ["step.done start", "loop.done each", "step.failed bad"]),
        (
            "loop.iteration.finished",
            [*["loop.iteration.done each"] * 2, *FAILED],
        ),
        ("LoopDone", ["loop.done each", "loop.done each"]),
        ("StepFailed", ["step.failed bad"]),
        ("next.enqueued", ["next.fired start", "next.fired each"]),
        ("re*.started", ["task.started ask 2"]),
        ("sink.*", ["task.started save 1", "task.done save 1"]),
        ("step.f*", ["step.failed bad"]),
        ("something.else", []),
    ],
)
def test_an_older_name_means_what_it_meant_and_no_more(name: str, expected: list[str]) -> None:
    ran = story_of_everything()
    found = [
        envelope(raw, execution_id="x1", seq=seq, at=0, trace_id=None)
        for seq, raw in enumerate(msgspec.json.decode(encode_events(ran.events)), 1)
    ]
    assert sorted(map(line_of, filter(wanted(name), found))) == sorted(expected)


def line_of(event: dict[str, Any]) -> str:
    data = event["data"]
    return " ".join(
        [event["name"], str(data["task"]), str(data["attempt"])]
        if "task" in data
        else [event["name"], event["step"]]
    )
