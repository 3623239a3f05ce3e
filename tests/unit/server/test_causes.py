"""Why an execution failed: step, iteration, task, attempt, rule and line."""

import pytest
from tests.support.scenario import Scenario, error, ok, scenario
from tests.support.steps import arc, call, loop, nested, noop, refuse, step, when

from noetl.playbook.load import load_valid
from noetl.server.causes import Cause, causes_of, unmatched_in
from noetl.server.failed_tasks import PlaybookText
from noetl.server.trail import Trail, trail_of

RETRY = when("outcome.error.retryable", "retry", attempts=2)


async def explained(told: Scenario) -> tuple[list[Cause], Trail]:
    async with told.running() as (local, active):
        await active.finished
        trail = await trail_of(local.storage.log, "x1")
        document = PlaybookText(load_valid(told.text), told.text)
        return causes_of(active.execution, trail, document), trail


async def test_a_task_without_a_policy() -> None:
    told = scenario(step("start", call("get", body="{{ workload.a }}")), workload={"a": 1}).answers(
        "get", error("http", "404")
    )
    [cause], _ = await explained(told)
    assert (cause.step, cause.error["kind"], cause.index) == ("start", "http", None)
    [link] = cause.chain
    assert (link.task, link.kind, link.attempt, link.policy) == ("get", "http", 1, False)
    assert link.inputs["body"] == "{{ workload.a }}"
    assert link.line is not None
    assert cause.line is not None
    assert link.line > cause.line


async def test_the_rule_that_decided() -> None:
    told = scenario(step("start", call("get", RETRY))).answers(
        "get", error("http", "503", retryable=True)
    )
    [cause], _ = await explained(told)
    assert cause.error["kind"] == "retry_exhausted"
    [link] = cause.chain
    assert (link.attempt, link.rule, link.when) == (2, 0, "{{ outcome.error.retryable }}")
    assert link.policy


async def test_an_iteration_and_a_nested_one() -> None:
    told = scenario(
        step(
            "start",
            nested("each", loop([10, 20], iterator="m"), call("get")),
            loop=loop([1, 2], mode="parallel"),
        )
    ).answers("get", ok(1), ok(2), ok(3), error("http", "500"))
    [cause], _ = await explained(told)
    assert cause.index is not None
    assert [link.task for link in cause.chain] == ["each", "get"]
    outer, inner = cause.chain
    assert outer.index == cause.index
    assert inner.index == 1
    assert inner.task_run_id.startswith(f"{outer.task_run_id}.")
    assert inner.error["kind"] == "http"


async def test_failures_that_an_arc_took_are_no_causes() -> None:
    told = scenario(
        step("start", call("get"), arcs=[arc("fix", "event.name == 'step.failed'")]),
        step("fix", noop("a")),
    ).answers("get", error("http"))
    causes, trail = await explained(told)
    assert causes == []
    assert [failed.step for failed in trail.steps] == ["start"]


async def test_a_failure_without_a_task() -> None:
    told = scenario(step("start", noop("a"), loop=loop("{{ 5 }}")))
    [cause], _ = await explained(told)
    assert (cause.step, cause.error["kind"], cause.chain) == ("start", "loop", [])


async def test_a_request_that_fails_has_no_step() -> None:
    told = scenario(step("start", noop("a")), workload={"x": "{{ 1 / 0 }}"})
    [cause], _ = await explained(told)
    assert (cause.step, cause.line, cause.error["kind"]) == ("", None, "template")


async def test_refusals_and_dropped_tokens_are_on_the_trail() -> None:
    told = scenario(
        step("start", arcs=[arc("shut")]), step("shut", noop("a"), admit=[refuse(True)])
    )
    causes, trail = await explained(told)
    assert causes == []
    [dropped] = trail.dropped
    assert dropped.step == "shut"
    assert trail.verdicts[dropped.token_id].rule == 0


@pytest.mark.rule("NEXT-5")
async def test_where_no_arc_matched_and_what_never_ran() -> None:
    told = scenario(
        step("start", noop("n"), arcs=[arc("a", "false"), arc("both", "false"), arc("go")]),
        step("go", noop("n"), arcs=[arc("both")]),
        step("both", noop("n"), arcs=[arc("a", "false"), arc("b", "1 > 2")]),
        step("a", noop("n"), arcs=[arc("c")]),
        step("b", noop("n")),
        step("c", noop("n")),
    )
    _, trail = await explained(told)
    [end] = unmatched_in(trail, load_valid(told.text))
    assert (end.step, end.never_ran) == ("both", ["a", "b", "c"])
    assert end.line is not None
