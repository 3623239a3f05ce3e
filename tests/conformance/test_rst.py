"""RST: a restart takes over what was recorded and runs again what was chosen."""

import asyncio
from itertools import product
from typing import Any

import pytest
from tests.support.canned import Silence
from tests.support.restarted import restarted
from tests.support.scenario import Gate, Scenario, error, ok, scenario
from tests.support.steps import (
    Tree,
    allow,
    arc,
    call,
    noop,
    otherwise,
    refuse,
    sets,
    step,
    when,
)

from noetl.errors import RestartRefused
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.outcome import Outcome
from noetl.node.local import LocalNode
from noetl.server.active import ActiveExecution
from noetl.tools.tool import ToolCall

WAYS = list(product(["sequential", "parallel"], ["local", "distributed"]))
each_way = pytest.mark.parametrize(("mode", "where"), WAYS)


def echo(asked: ToolCall[Any]) -> Outcome:
    """Answers with what it was given."""
    return ok(asked.inputs.body)


def writes(label: str, key: str, **inputs: Any) -> Tree:
    fails = when("outcome.status == 'error'", "fail")
    return call(label, fails, otherwise(set_ctx={key: "{{ outcome.result }}"}), **inputs)


def three(**roots: Any) -> Scenario:
    """start → b → c, each of which is told what the one before came to."""
    return scenario(
        step("start", writes("ask", "a"), arcs=[arc("b", got="{{ event.result }}")]),
        step("b", writes("work", "b", body="{{ args.got }}"), arcs=[arc("c", got="{{ ctx.b }}")]),
        step("c", call("last", body="{{ args.got }} {{ workload.word }}")),
        workload={"word": "old", "deep": {"x": 1, "y": 2}},
        **roots,
    )


# ── plain steps ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("RST-1", "RST-2", "RST-3")
def test_what_failed_is_run_again_and_nothing_else() -> None:
    made = three().answers("ask", ok("one")).answers("work", error("x"), ok("two"))
    before, after = restarted(made)
    assert (before.status, before.labels()) == ("failed", ["ask", "work"])
    assert (after.status, after.labels()) == ("completed", ["work", "last"])
    assert after.inputs("work") == ["one"]
    assert after.ctx == {"a": "one", "b": "two"}
    requested = after.events[0]
    assert isinstance(requested, e.ExecutionRequested)
    assert requested.origin_execution_id == "x1"
    assert requested.origin_seq == len(before.events)
    assert requested.chosen == [f"b@{before.one(e.StepFailed).step_run_id}"]
    assert after.steps == {"start": (1, 0, "done"), "b": (1, 0, "done"), "c": (1, 0, "done")}
    assert after.names[:4] == [
        "playbook.execution.requested",
        "playbook.request.evaluated",
        "execution.restored",
        "token.created",
    ]


@pytest.mark.rule("RST-1")
def test_a_completed_execution_goes_back_to_a_step_without_what_came_of_it() -> None:
    made = three().answers("ask", ok("one")).answers("work", ok("two"), ok("three"))
    before, after = restarted(made, "b")
    assert before.ctx == {"a": "one", "b": "two"}
    assert (after.status, after.labels()) == ("completed", ["work", "last"])
    assert after.inputs("last") == ["three old"]
    assert after.one(e.ExecutionRestored).ctx == {"a": "one"}


@pytest.mark.rule("RST-1")
def test_from_the_first_step_everything_is_run_again() -> None:
    made = three().answers("ask", ok("one"), ok("uno"))
    _, after = restarted(made, "start")
    assert after.labels() == ["ask", "work", "last"]
    assert after.inputs("work") == ["uno"]


@pytest.mark.rule("RST-1")
def test_another_run_of_a_step_than_the_last_is_chosen_by_its_id() -> None:
    turns = "ctx.n < 3"
    made = scenario(
        step("start", writes("turn", "n", body="{{ ctx.n | default(0) + 1 }}"),
             arcs=[arc("start", turns), arc("end")]),
        step("end", call("last", body="{{ ctx.n }}")),
    ).answers("turn", echo)  # fmt: skip
    before, after = restarted(made, "start@4")
    assert before.of(e.StepScheduled)[0].step_run_id == "4.0"
    assert before.inputs("turn") == [1, 2, 3]
    assert after.inputs("turn") == [1, 2, 3]


@pytest.mark.rule("RST-1")
def test_the_last_run_of_a_step_is_meant_where_none_is_named() -> None:
    made = scenario(
        step("start", writes("turn", "n", body="{{ ctx.n | default(0) + 1 }}"),
             arcs=[arc("start", "ctx.n < 3"), arc("end")]),
        step("end", call("last", body="{{ ctx.n }}")),
    ).answers("turn", echo)  # fmt: skip
    before, after = restarted(made, "start")
    assert before.inputs("turn") == [1, 2, 3]
    assert after.inputs("turn") == [3]
    assert after.steps == {"start": (3, 0, "done"), "end": (1, 0, "done")}


@pytest.mark.rule("RST-1")
def test_a_failure_elsewhere_stays_recorded() -> None:
    made = scenario(
        step("start", noop("go"), arcs=[arc("a"), arc("b")], mode="inclusive"),
        step("a", call("one")),
        step("b", call("two")),
    ).answers("one", error("x"))
    _, after = restarted(made, "b")
    assert (after.status, after.labels()) == ("failed", ["two"])
    assert after.error["step"] == "a"


# ── joins, routers, ctx ──────────────────────────────────────────────────────────────────────


def diamond(join: Any = "all") -> Scenario:
    spec = {"from": ["a", "b"], "mode": join}
    return scenario(
        step("start", noop("go"), arcs=[arc("a"), arc("b")], mode="inclusive"),
        step("a", call("one"), arcs=[arc("meet", a="{{ event.result }}")]),
        step("b", call("two"), arcs=[arc("meet", b="{{ event.result }}")]),
        step("meet", call("last", body="{{ args }}"), join=spec),
    )


@pytest.mark.rule("RST-1")
def test_a_join_waits_again_for_the_token_of_what_failed() -> None:
    made = diamond().answers("one", ok(1)).answers("two", error("x"), ok(2))
    before, after = restarted(made)
    assert before.status == "failed"
    assert after.labels() == ["two", "last"]
    assert after.inputs("last") == [{"a": 1, "b": 2, "from": {"a": {"a": 1}, "b": {"b": 2}}}]


@pytest.mark.rule("RST-1")
def test_a_join_that_took_a_forgotten_token_is_forgotten_and_the_others_wait_again() -> None:
    made = diamond().answers("one", ok(1)).answers("two", ok(2), ok(3))
    before, after = restarted(made, "b")
    assert before.status == after.status == "completed"
    assert after.labels() == ["two", "last"]
    assert after.inputs("last") == [{"a": 1, "b": 3, "from": {"a": {"a": 1}, "b": {"b": 3}}}]


@pytest.mark.rule("RST-1")
def test_a_join_itself_is_run_again_with_all_its_tokens() -> None:
    made = diamond().answers("one", ok(1)).answers("two", ok(2)).answers("last", error("x"), ok())
    _, after = restarted(made)
    assert after.labels() == ["last"]
    assert after.inputs("last") == [{"a": 1, "b": 2, "from": {"a": {"a": 1}, "b": {"b": 2}}}]


@pytest.mark.rule("RST-1")
def test_a_token_that_comes_after_its_join_fired_is_absorbed_as_before() -> None:
    made = diamond("any").answers("one", ok(1)).answers("two", ok(2))
    before, _ = restarted(made, "start")
    late = before.one(e.TokenAbsorbed)
    late_source = before.one(e.TokenCreated, token_id=late.token_id).source
    made = diamond("any").answers("one", ok(1)).answers("two", ok(2))
    _, after = restarted(made, late_source)
    assert len(after.of(e.TokenAbsorbed)) == 1
    assert len(after.labels()) == 1


@pytest.mark.rule("RST-1")
def test_an_exclusive_router_decides_anew() -> None:
    made = scenario(
        step("start", call("ask"), arcs=[arc("low", "event.result < 5"), arc("high")]),
        step("low", sets("l", way="low")),
        step("high", sets("h", way="high")),
    ).answers("ask", ok(1), ok(9))
    before, after = restarted(made, "start")
    assert (before.ctx, after.ctx) == ({"way": "low"}, {"way": "high"})
    assert set(after.steps) == {"start", "high"}


@pytest.mark.rule("RST-1", "SCOPE-6")
@pytest.mark.parametrize("how", ["sum", "append", "merge", "count"])
def test_a_key_that_the_executor_reduces_forgets_what_is_forgotten(how: str) -> None:
    values = {"merge": [{"a": 1}, {"b": 2}, {"c": 3}]}.get(how, [1, 2, 3])
    made = scenario(
        step("start", noop("go"), arcs=[arc("a"), arc("b"), arc("c")], mode="inclusive"),
        *(step(name, writes(name, "total")) for name in "abc"),
        executor={"spec": {"policy": {"reduce": {"total": how}}}},
    )
    for name, value in zip("abc", values, strict=True):
        made.answers(name, ok(value))
    before, after = restarted(made, "b")
    assert after.labels() == ["b"]
    together = sorted(map(str, before.ctx["total"])) if how == "append" else before.ctx["total"]
    found = sorted(map(str, after.ctx["total"])) if how == "append" else after.ctx["total"]
    assert found == together


@pytest.mark.rule("RST-1")
def test_a_token_that_was_refused_waits_again_for_what_may_admit_it() -> None:
    made = scenario(
        step("start", noop("go"), arcs=[arc("a"), arc("gated")], mode="inclusive"),
        step("a", writes("one", "open")),
        step("gated", call("two"), admit=[allow("ctx.open | default(false)"), refuse()]),
    ).answers("one", error("x"), ok(True))
    before, after = restarted(made)
    assert before.labels() == ["one"]
    assert (after.status, after.labels()) == ("completed", ["one", "two"])


@pytest.mark.rule("RST-1")
def test_the_final_step_is_told_of_the_restart() -> None:
    made = scenario(
        step("start", call("work")),
        step("clean", call("sweep", body="{{ args.status }}")),
        executor={"spec": {"final_step": "clean"}},
    ).answers("work", error("x"), ok())
    before, after = restarted(made)
    assert before.inputs("sweep") == ["failed"]
    assert after.inputs("sweep") == ["completed"]


# ── what was stopped ─────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("RST-1")
def test_a_cancelled_execution_goes_on_after_its_last_recorded_task() -> None:
    silence = Silence()
    made = scenario(
        step("start", call("one"), call("two"), call("three")),
    ).answers("two", silence, ok(2))

    async def cancel(local: LocalNode, active: ActiveExecution) -> None:
        while len(made.tools.calls) < 2:
            await asyncio.sleep(0)
        local.server.receive(active, r.CancelExecution(reason="enough"))

    before, after = restarted(made, first=cancel)
    assert (before.status, before.labels()) == ("cancelled", ["one", "two"])
    assert (after.status, after.labels()) == ("completed", ["two", "three"])


@pytest.mark.rule("RST-1")
def test_what_fail_fast_stopped_goes_on_and_its_routers_are_asked() -> None:
    gate = Gate(ok(2))
    made = (
        scenario(
            step("start", noop("go"), arcs=[arc("a"), arc("b")], mode="inclusive"),
            step("a", call("one"), arcs=[arc("meet", a="{{ event.result }}")]),
            step("b", call("two"), arcs=[arc("meet", b="{{ event.result }}")]),
            step("meet", call("last"), join={"from": ["a", "b"], "mode": "all"}),
            executor={"spec": {"policy": {"fail_fast": True}}},
        )
        .answers("one", error("x"), ok(1))
        .answers("two", gate)
    )

    def again() -> None:
        made.answers("two", ok(2))

    before, after = restarted(made, between=again)
    assert before.status == "failed"
    assert (after.status, sorted(after.labels())) == ("completed", ["last", "one", "two"])


# ── other texts, other workloads ─────────────────────────────────────────────────────────────


@pytest.mark.rule("RST-4")
def test_a_corrected_text_is_taken_where_it_has_what_is_kept() -> None:
    made = three().answers("ask", ok("one")).answers("work", error("x"), ok("two"))
    fixed = scenario(
        step("start", writes("ask", "a"), arcs=[arc("b", got="{{ event.result }}")]),
        step("b", call("better", body="{{ args.got }}"), arcs=[arc("d")]),
        step("d", call("new")),
        workload={"word": "default", "more": 7},
    )
    _, after = restarted(made, plan=fixed.plan, between=lambda: keep(made, fixed))
    assert (after.status, after.labels()) == ("completed", ["better", "new"])
    assert after.execution.workload == {"word": "old", "deep": {"x": 1, "y": 2}, "more": 7}


def keep(made: Scenario, fixed: Scenario) -> None:
    made.home.tables.playbooks[fixed.plan.digest] = (fixed.text, None)


@pytest.mark.rule("RST-4")
def test_a_text_without_what_is_kept_is_refused_with_the_names() -> None:
    made = three().answers("work", error("x"))
    other = scenario(step("begin", noop("go"), arcs=[arc("b")]), step("b", call("work")))
    with pytest.raises(RestartRefused, match="step 'start'; keep it in the text, or restart from"):
        restarted(made, plan=other.plan)


@pytest.mark.rule("RST-4")
def test_the_workload_changes_for_what_runs_from_now_on() -> None:
    made = three().answers("work", error("x"), ok("two"))
    _, after = restarted(made, payload={"word": "new", "deep": {"y": 3}})
    assert after.inputs("last") == ["two new"]
    assert after.execution.workload == {"word": "new", "deep": {"x": 1, "y": 3}}
    assert after.one(e.ExecutionRequested).payload == {"word": "new", "deep": {"y": 3}}


@pytest.mark.rule("RST-1")
@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ((), "nothing of it failed"),
        (("nowhere",), "no step 'nowhere'; it has 'start', 'b', 'c'"),
        (("b:0",), "has no loop"),
        (("b@77",), "no run 77; it has b@"),
        (("b:x",), "expected STEP"),
        (("strat",), "no step 'strat'; did you mean 'start'?"),
    ],
)
def test_what_cannot_be_chosen_is_refused_with_the_reason(
    chosen: tuple[str, ...], said: str
) -> None:
    with pytest.raises(RestartRefused, match=said):
        restarted(three(), *chosen)


@pytest.mark.rule("RST-1")
def test_an_execution_that_has_not_ended_is_refused() -> None:
    made = three().answers("ask", Silence())

    async def story(local: LocalNode, active: ActiveExecution) -> None:
        while not made.tools.calls:
            await asyncio.sleep(0)
        with pytest.raises(RestartRefused, match="has not ended"):
            await local.restarts.begin("x1")
        local.server.receive(active, r.CancelExecution())

    made.act(story)


@pytest.mark.rule("RST-1")
def test_a_restart_can_be_restarted() -> None:
    made = three().answers("ask", ok("one")).answers("work", error("x"), ok("two"), ok("three"))
    made.answers("last", error("y"), ok("end"))
    _, second = restarted(made)
    assert second.status == "failed"
    _, third = restarted(made, "b", origin=second.execution.execution_id)
    assert (third.status, third.labels()) == ("completed", ["work", "last"])
    assert third.ctx == {"a": "one", "b": "three"}
    assert third.execution.origin_execution_id == second.execution.execution_id
