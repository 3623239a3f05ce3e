"""OUT: the one outcome of a call, and the kinds of errors."""

import re
from typing import Any

import pytest
from tests.support.scenario import error, ok, scenario
from tests.support.steps import Tree, call, noop, otherwise, step, task, when

from noetl.messages import events as e
from noetl.messages.outcome import ERROR_KINDS, Outcome, failed
from noetl.tools.tool import ToolCall


@pytest.mark.rule("OUT-1", "OUT-2")
def test_an_outcome_has_status_result_error_meta_and_its_block() -> None:
    ran = (
        scenario(step("start", call("fetch"))).answers("fetch", ok([1], http={"status": 200})).run()
    )
    outcome = ran.one(e.TaskDone).outcome
    assert sorted(outcome) == ["error", "http", "meta", "result", "status"]
    assert (outcome["status"], outcome["result"], outcome["error"]) == ("ok", [1], None)
    assert outcome["http"] == {"status": 200}
    meta = outcome["meta"]
    assert sorted(meta) == [
        "attempt",
        "duration_ms",
        "started_at",
        "task_run_id",
        "trace_id",
        "worker",
    ]
    assert meta["attempt"] == 1
    assert meta["task_run_id"] == ran.one(e.TaskDone).task_run_id == "4.1"
    assert meta["trace_id"] == "x1"
    assert meta["duration_ms"] >= 0
    assert meta["started_at"] > 1_600_000_000_000
    assert re.fullmatch(r"local-\d+", meta["worker"])


@pytest.mark.rule("OUT-2", "TPL-3")
def test_fields_of_a_block_that_have_no_value_are_absent() -> None:
    """No response arrived: a guard on its status is false, and the next rule is asked."""
    rules = [
        when("outcome.http.status >= 400", "fail"),
        when("outcome.http.status is defined", "fail"),
        otherwise(set_ctx={"block": "{{ outcome.http }}"}),
    ]
    refused = error("connection", "refused", http={"status": None, "headers": {}})
    ran = scenario(step("start", call("fetch", *rules))).answers("fetch", refused).run()
    assert ran.status == "completed"
    assert ran.ctx == {"block": {"headers": {}}}


@pytest.mark.rule("OUT-1")
@pytest.mark.parametrize("kind", ["http", "noop"])
def test_rules_see_meta(kind: str) -> None:
    rules = [
        when("outcome.meta.attempt == 1", "retry", attempts=2),
        otherwise(set_ctx={"id": "{{ outcome.meta.task_run_id }}"}),
    ]
    judged = call("judged", *rules) if kind == "http" else noop("judged", *rules)
    ran = scenario(step("start", judged)).run()
    assert ran.ctx == {"id": "4.1"}
    assert [event.outcome["meta"]["attempt"] for event in ran.of(e.TaskDone)] == [1, 2]


@pytest.mark.rule("OUT-1", "OUT-2")
def test_an_error_has_kind_message_and_retryable() -> None:
    busy = error("http", "busy", retryable=True, http={"status": 503, "headers": {}})
    ran = scenario(step("start", call("fetch"))).answers("fetch", busy).run()
    outcome = ran.one(e.TaskDone).outcome
    assert outcome["status"] == "error"
    assert outcome["error"] == {"kind": "http", "message": "busy", "retryable": True}
    assert outcome["http"]["status"] == 503


def raises(_: ToolCall[Any]) -> Outcome:
    raise RuntimeError("a plugin's own fault")


def times_out(_: ToolCall[Any]) -> Outcome:
    raise TimeoutError("inside the tool")


def odd(_: ToolCall[Any]) -> Outcome:
    return ok(object())


ODD: dict[str, tuple[Any, str, str]] = {
    "a tool that raises": (raises, "internal", "RuntimeError: a plugin's own fault"),
    "a tool with a timeout of its own": (times_out, "internal", "TimeoutError: inside the tool"),
    "what no JSON can hold": (odd, "result", "what no JSON can hold"),
    "half a character": (ok("\ud800"), "result", "what no JSON can hold"),
}


@pytest.mark.rule("OUT-1", "OUT-4")
@pytest.mark.parametrize(("answer", "kind", "says"), ODD.values(), ids=ODD)
def test_a_bad_tool_gives_one_outcome_all_the_same(answer: Any, kind: str, says: str) -> None:
    ran = scenario(step("start", call("fetch"))).answers("fetch", answer).run()
    assert ran.status == "failed"
    assert ran.error["kind"] == kind
    assert says in ran.error["message"]
    assert ran.one(e.TaskDone).outcome["status"] == "error"


BAD_INPUT: dict[str, tuple[Tree, str, str]] = {
    "a wrong type": (task("t", "http", url="{{ [1] }}"), "input", "'url' is a list, expected text"),
    "an undefined value": (task("t", "http", url="{{ ctx.none }}"), "template", "'ctx.none'"),
    "no such workbook task": (task("t", "workbook", name="{{ 'x' }}"), "not_found", "'x'"),
}


@pytest.mark.rule("OUT-4")
@pytest.mark.parametrize(("broken", "kind", "says"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_what_is_wrong_before_the_call_is_an_outcome_too(
    broken: Tree, kind: str, says: str
) -> None:
    ran = scenario(step("start", broken)).run()
    assert ran.error["kind"] == kind
    assert says in ran.error["message"]
    assert ran.calls == []


KINDS = """
template input auth connection timeout http decode postgres duckdb snowflake python exit container
quantum object playbook policy loop limit ctx_conflict retry_exhausted result not_found cancelled
worker_lost internal
"""


@pytest.mark.rule("OUT-4")
def test_the_kinds_of_errors_are_those_of_the_language() -> None:
    assert sorted(ERROR_KINDS) == sorted(KINDS.split())


@pytest.mark.rule("OUT-1", "EVT-5")
@pytest.mark.parametrize(
    ("given", "plain"),
    [({1}, [1]), ((1, (2,)), [1, [2]]), ({1: {2: 3}}, {"1": {"2": 3}}), (b"ab", "YWI=")],
)
def test_a_result_is_what_the_log_holds(given: Any, plain: Any) -> None:
    ran = (
        scenario(step("start", call("fetch"), call("see", body="{{ _prev }}")))
        .answers("fetch", ok(given))
        .run()
    )
    assert ran.inputs("see") == [plain]
    assert ran.of(e.TaskDone)[0].outcome["result"] == plain


@pytest.mark.rule("OUT-4")
def test_a_wrapped_error_is_under_cause() -> None:
    outcome = failed("playbook", "child failed", cause={"kind": "http", "message": "busy"})
    rules = otherwise("retry", attempts=1)
    ran = scenario(step("start", call("fetch", rules))).answers("fetch", outcome).run()
    assert ran.error["kind"] == "retry_exhausted"
    assert ran.error["cause"]["kind"] == "playbook"
    assert ran.error["cause"]["cause"]["kind"] == "http"


@pytest.mark.rule("OUT-1", "TOOL-2")
def test_a_workbook_task_has_the_block_of_its_own_kind() -> None:
    ran = (
        scenario(
            step(
                "start",
                task(
                    "borrow",
                    "workbook",
                    when("outcome.http.status == 201"),
                    name="post",
                    args={"n": 2},
                ),
            ),
            workbook={"tasks": {"post": {"kind": "http", "url": "x", "body": "{{ args.n + 1 }}"}}},
        )
        .answers("post", ok("made", http={"status": 201}))
        .run()
    )
    assert ran.one(e.TaskDone).rule == 0
    assert ran.calls[0].inputs.body == 3
    assert ran.result == "made"
