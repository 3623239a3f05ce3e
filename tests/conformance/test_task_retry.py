"""TASK-3, TASK-4: when retries run out, how long a server asks to wait, why a rule fails."""

from typing import Any

import pytest
from tests.support.scenario import Scenario, error, ok, scenario
from tests.support.steps import Tree, call, otherwise, step, when

from noetl.messages import events as e
from noetl.messages.outcome import Outcome


def alone(*tasks: Tree, **roots: Any) -> Scenario:
    return scenario(step("start", *tasks), **roots)


BUSY = error("http", "busy", http={"status": 503})
SPENT: dict[str, tuple[list[Tree], str, str | None]] = {
    # rules below the retry → directive, kind of the error that fails the step
    "none": ([], "fail", "retry_exhausted"),
    "only else": ([otherwise("break")], "fail", "retry_exhausted"),
    "a rule for it": ([when("outcome.exhausted", "continue")], "continue", None),
    "a rule for the last outcome": ([when("outcome.http.status == 503", "break")], "break", None),
    "fail": ([when("outcome.status == 'error'", "fail")], "fail", "retry_exhausted"),
    "no match": ([when("outcome.status == 'ok'", "break")], "fail", "retry_exhausted"),
    "the first of two": ([when(True, "break"), when(True, "fail")], "break", None),
}


@pytest.mark.rule("TASK-3")
@pytest.mark.parametrize(("below", "do", "kind"), SPENT.values(), ids=SPENT)
def test_rules_below_a_retry_are_asked_once_it_is_exhausted(
    below: list[Tree], do: str, kind: str | None
) -> None:
    rules = [when("outcome.status == 'error'", "retry", attempts=2), *below]
    ran = alone(call("fetch", *rules), call("after")).answers("fetch", BUSY).run()
    assert ran.labels() == ["fetch", "fetch"] + ["after"] * (do == "continue")
    last = ran.of(e.TaskDone, task="fetch")[-1]
    assert last.do == do
    assert "exhausted" not in last.outcome
    assert (ran.status == "failed", ran.execution.error and ran.error["kind"]) == (
        do == "fail",
        kind,
    )
    if kind:
        assert ran.error["cause"]["message"] == "busy"


@pytest.mark.rule("TASK-3")
def test_before_that_nothing_is_exhausted() -> None:
    rules = [when("outcome.exhausted", "break"), when("outcome.error", "retry", attempts=3)]
    ran = alone(call("fetch", *rules)).answers("fetch", BUSY).run()
    assert len(ran.calls) == 3
    assert ran.error["kind"] == "retry_exhausted"


AFTER_DATE = {
    "date": "Mon, 16 Nov 2026 10:00:00 GMT",
    "retry-after": "Mon, 16 Nov 2026 10:00:20 GMT",
}
TOLD: dict[str, tuple[Tree, Tree, float]] = {
    # headers, directive → pause
    "longer than the delay": ({"retry-after": "30"}, {"delay": 2}, 30),
    "shorter than the delay": ({"retry-after": "1"}, {"delay": 2}, 2),
    "up to max_delay": ({"retry-after": "30"}, {"delay": 2, "max_delay": 10}, 10),
    "a date": (AFTER_DATE, {"delay": 2}, 20),
    "a date without the answer's own": (
        {"retry-after": AFTER_DATE["retry-after"]},
        {"delay": 2},
        2,
    ),
    "nonsense": ({"retry-after": "soon", "date": "now"}, {"delay": 2}, 2),
}


@pytest.mark.rule("TASK-3")
@pytest.mark.parametrize(("headers", "then", "pause_"), TOLD.values(), ids=TOLD)
def test_a_retry_waits_as_long_as_the_server_asks(headers: Tree, then: Tree, pause_: float) -> None:
    busy = error("http", retryable=True, http={"status": 429, "headers": headers})
    rules = [when("outcome.status == 'error'", "retry", attempts=2, **then)]
    ran = alone(call("fetch", *rules)).answers("fetch", busy, ok()).run()
    assert (ran.status, ran.pauses) == ("completed", [pause_])


@pytest.mark.rule("TASK-4", "OUT-4")
@pytest.mark.parametrize("outcome", [ok("v"), BUSY], ids=["ok", "error"])
def test_fail_says_why_in_its_own_words(outcome: Outcome) -> None:
    said = "no stock of {{ workload.what }}: {{ outcome.status }}"
    made = alone(call("ask", otherwise("fail", message=said)), workload={"what": "tea"})
    ran = made.answers("ask", outcome).run()
    assert (ran.error["kind"], ran.error["message"]) == (
        "policy",
        f"no stock of tea: {outcome.status}",
    )
    assert ran.error.get("cause") == outcome.error
    assert ran.error["step"] == "start"


@pytest.mark.rule("TASK-3", "TASK-4")
def test_the_words_of_a_fail_stand_on_what_was_exhausted() -> None:
    rules = [
        when("outcome.error", "retry", attempts=2),
        when("outcome.exhausted", "fail", message="gave up"),
    ]
    ran = alone(call("fetch", *rules)).answers("fetch", BUSY).run()
    causes = [ran.error, ran.error["cause"], ran.error["cause"]["cause"]]
    assert [one["kind"] for one in causes] == ["policy", "retry_exhausted", "http"]
