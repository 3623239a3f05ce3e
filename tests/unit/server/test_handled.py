"""What went wrong and did not fail an execution: counted from the log, and told."""

from typing import Any

import pytest
from tests.support.scenario import Scenario, error, ok, scenario
from tests.support.steps import arc, call, loop, nested, noop, otherwise, step, when

from noetl.cli.explain import words_of
from noetl.control.execution import Execution
from noetl.server.replay import frozen, replay, thawed, thawed_or_new
from noetl.server.views.explanation import Explanation, explanation_of
from noetl.server.views.standing import listed_of, standing_of

ONLY_429 = when("outcome.http.status == 429", "retry", attempts=2)
FAILED = "event.name == 'step.failed'"


async def counted(told: Scenario) -> tuple[int, int]:
    """Errors passed and failures handled; the same from the log, and from a snapshot."""
    async with told.running() as (local, active):
        await active.finished
        live = active.execution
        folded, _ = await replay(local.storage.log, "x1", active.plan, from_snapshot=False)
        kept = thawed(frozen(live))
        found = {(one.errors_passed, one.failures_handled) for one in (live, folded, kept)}
        [counts] = found
        return counts


async def explained(told: Scenario) -> Explanation:
    async with told.running() as (local, active):
        await active.finished
        row = await local.row("x1")
        return await explanation_of(local.storage, row, active.execution, active.plan)


@pytest.mark.rule("TASK-2")
@pytest.mark.parametrize(
    ("rules", "answers", "passed"),
    [
        ([ONLY_429], [ok(1)], 0),
        ([ONLY_429], [error("http", http={"status": 500})], 1),
        ([ONLY_429], [error("http", http={"status": 429}), ok(1)], 0),
        ([otherwise("continue")], [error("http")], 1),
        ([otherwise("break")], [error("http")], 1),
        ([otherwise("fail")], [error("http")], 0),
        ([], [error("http")], 0),
    ],
)
async def test_errors_after_which_a_pipeline_went_on(
    rules: list[Any], answers: list[Any], passed: int
) -> None:
    told = scenario(step("start", call("get", *rules))).answers("get", *answers)
    assert await counted(told) == (passed, 0)


@pytest.mark.rule("LOOP-4")
async def test_failed_iterations_that_a_loop_tolerates() -> None:
    def told() -> Scenario:
        tolerant = loop([1, 2, 3], on_failure="continue")
        answers = error("http"), ok(1), error("http")
        return scenario(step("start", call("get"), loop=tolerant)).answers("get", *answers)

    assert await counted(told()) == (2, 0)
    found = await explained(told())
    [tolerated] = found.tolerated
    assert (tolerated.step, tolerated.failed, tolerated.total) == ("start", 2, 3)
    words = "\n".join(words_of(found))
    assert "went on after 2 failed iterations of 3" in words
    assert [index for index, _ in tolerated.first] == [0, 2]
    assert (
        f"run the failed iterations again: noetl restart {found.execution_id} --from start:0,2"
        in words
    )


@pytest.mark.rule("LOOP-7")
@pytest.mark.parametrize(("on_failure", "passed"), [("continue", 1), ("stop", 0)])
async def test_failed_iterations_of_a_nested_loop(on_failure: str, passed: int) -> None:
    inner = nested("each", loop([1, 2], iterator="m", on_failure=on_failure), call("get"))
    told = scenario(step("start", inner)).answers("get", ok(1), error("http"))
    assert await counted(told) == (passed, 0)


def alarm() -> Scenario:
    return scenario(
        step("start", call("get"), arcs=[arc("alarm", FAILED)]), step("alarm", noop("tell"))
    ).answers("get", error("http", "the shop is closed"))


@pytest.mark.rule("NEXT-3")
async def test_a_failure_that_an_arc_took() -> None:
    assert await counted(alarm()) == (0, 1)


async def test_its_cause_stays_visible() -> None:
    async with alarm().running() as (local, active):
        await active.finished
        row = await local.row("x1")
        listed = listed_of(row, interrupted=False)
        standing = await standing_of(local.storage, row, active.execution, active.plan)
    assert (listed.status, listed.error) == ("completed", None)
    assert listed.note == "1 failure handled: the shop is closed"
    assert (standing.failures_handled, standing.errors_passed) == (1, 0)


async def test_explain_follows_it_through_the_arc() -> None:
    found = await explained(alarm())
    assert (found.causes, found.failures_handled) == ([], 1)
    [cause] = found.handled
    assert [(one.step, one.status) for one in cause.taken_by] == [("alarm", "done")]
    words = "\n".join(words_of(found))
    assert "completed, 1 failure handled" in words
    assert "http: the shop is closed" in words
    assert "the arc to 'alarm' (line" in words
    assert "no arc took the failure" not in words


async def test_what_takes_a_failure_may_fail_itself() -> None:
    told = scenario(
        step("start", call("get"), arcs=[arc("alarm", FAILED)]), step("alarm", call("tell"))
    )
    told.answers("get", error("http", "closed")).answers("tell", error("http", "mute"))
    found = await explained(told)
    assert [cause.step for cause in found.causes] == ["alarm"]
    assert [cause.step for cause in found.handled] == ["start"]
    assert found.handled[0].taken_by[0].status == "failed"


async def test_explain_tells_after_which_error_it_went_on() -> None:
    told = scenario(
        step("start", call("get", ONLY_429, body="{{ workload.a }}")), workload={"a": 7}
    )
    told.answers("get", error("http", "down", http={"status": 500}))
    found = await explained(told)
    [link] = found.went_on
    assert (link.step, link.task, link.do, link.rule) == ("start", "get", "continue", None)
    assert link.rendered["body"] == 7
    words = "\n".join(words_of(found))
    assert "completed, went on after an error" in words
    assert "no rule of its policy matched: it went on (TASK-2)" in words


def test_a_snapshot_of_before_the_counts_is_not_taken_for_all() -> None:
    """T19: the log knows what an older program did not count."""
    body = frozen(Execution(execution_id="x1", seq=4))
    assert thawed_or_new(body, "x1").seq == 4
    older = body.replace(b'"form":2', b'"form":1')
    assert thawed_or_new(older, "x1").seq == 0
