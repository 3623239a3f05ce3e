"""TASK: pipelines, policies, retries, jumps, timeouts, and going on after a crash."""

import asyncio
from typing import Any

import pytest
from tests.support.canned import Silence
from tests.support.crash import crash_everywhere, outcomes_in
from tests.support.scenario import Scenario, error, name_of, ok, scenario
from tests.support.steps import Tree, arc, call, loop, noop, otherwise, step, task, when

from noetl.messages import events as e
from noetl.messages.outcome import Outcome
from noetl.node.local import LocalNode
from noetl.pipeline.backoff import pause
from noetl.playbook.model import Backoff
from noetl.server.active import ActiveExecution


def alone(*tasks: Tree, **roots: Any) -> Scenario:
    return scenario(step("start", *tasks), **roots)


@pytest.mark.rule("TASK-1", "SCOPE-3", "EVT-2")
def test_tasks_run_in_order() -> None:
    made = alone(call("one"), call("two", body="{{ _prev }}"), call("three", body="{{ _prev }}"))
    ran = made.answers("one", ok(1)).answers("two", ok(2)).answers("three", ok(3)).run()
    assert ran.labels() == ["one", "two", "three"]
    assert ran.inputs("three") == [2]
    assert ran.result == 3
    assert ran.story("start") == [
        "workflow.started",
        "token.created",
        "step.scheduled",
        "token.enqueued",
        "token.claimed",
        "step.started",
        *["task.started", "task.done"] * 3,
        "step.done",
    ]


OK, BAD = ok("v"), error("http", http={"status": 503})
AFTER = "after"
POLICY: dict[str, tuple[Outcome, list[Tree], str, int | None, str]] = {
    # outcome, rules → directive, rule number, status of the execution
    "no policy, ok": (OK, [], "continue", None, "completed"),
    "no policy, error": (BAD, [], "fail", None, "failed"),
    "no match, ok": (OK, [when(False, "fail")], "continue", None, "completed"),
    "no match, error": (BAD, [when(False, "fail")], "continue", None, "completed"),
    "the first match wins": (OK, [when(True), when(True, "fail")], "continue", 0, "completed"),
    "a later rule": (OK, [when(False), when(True, "fail")], "fail", 1, "failed"),
    "else": (BAD, [when("outcome.result", "fail"), otherwise()], "continue", 1, "completed"),
    "break": (OK, [otherwise("break")], "break", 0, "completed"),
    "the block of the kind": (
        BAD,
        [when("outcome.http.status == 503", "break"), otherwise("fail")],
        "break",
        0,
        "completed",
    ),
    "nothing of a response that never came": (
        error("connection"),
        [when("outcome.http.status >= 500", "break"), otherwise("fail")],
        "fail",
        1,
        "failed",
    ),
}


@pytest.mark.rule("TASK-2", "TASK-4", "OUT-2", "TPL-3")
@pytest.mark.parametrize(("outcome", "rules", "do", "rule", "status"), POLICY.values(), ids=POLICY)
def test_policy(
    outcome: Outcome, rules: list[Tree], do: str, rule: int | None, status: str
) -> None:
    ran = alone(call("judged", *rules), call(AFTER)).answers("judged", outcome).run()
    first = ran.of(e.TaskDone)[0]
    assert (first.do, first.rule) == (do, rule)
    assert ran.status == status
    assert ran.labels() == (["judged", AFTER] if do == "continue" else ["judged"])


@pytest.mark.rule("TASK-4", "OUT-4")
def test_fail_after_ok_is_an_error_of_kind_policy() -> None:
    ran = alone(call("judged", when("outcome.result == 'v'", "fail"))).answers("judged", OK).run()
    assert ran.error["kind"] == "policy"
    assert "rule 1 of task 'judged'" in ran.error["message"]


@pytest.mark.rule("TASK-2", "TPL-3")
@pytest.mark.parametrize(
    "rules",
    [
        [when("'a' < 3")],
        [otherwise(set_ctx={"x": "{{ ctx.nothing }}"})],
        [otherwise(set_iter={"x": "{{ outcome.result.nothing }}"})],
        [otherwise("jump", to="judged", delay="{{ 'soon' }}")],
    ],
    ids=["guard", "set_ctx", "set_iter", "delay"],
)
def test_a_rule_that_cannot_be_evaluated_fails_the_step(rules: list[Tree]) -> None:
    ran = alone(call("judged", *rules)).answers("judged", OK).run()
    assert (ran.status, ran.error["kind"]) == ("failed", "template")
    assert "a rule of task 'judged'" in ran.error["message"]
    assert ran.ctx == {}


@pytest.mark.rule("TASK-2", "TPL-3", "OUT-4")
def test_an_input_that_cannot_be_rendered_is_an_outcome_that_the_policy_sees() -> None:
    broken = call("judged", when("outcome.error.kind == 'template'", "break"), body="{{ ctx.no }}")
    ran = alone(broken, call(AFTER)).run()
    assert ran.status == "completed"
    assert ran.calls == []
    assert ran.one(e.TaskDone).outcome["error"]["undefined"] == "ctx.no"


RETRY: dict[str, tuple[Tree, list[float]]] = {
    "none": ({"delay": 3}, [3, 3, 3]),
    "linear": ({"delay": 3, "backoff": "linear"}, [3, 6, 9]),
    "exponential": ({"delay": 3, "backoff": "exponential"}, [3, 6, 12]),
    "capped": ({"delay": 3, "backoff": "exponential", "max_delay": 5}, [3, 5, 5]),
    "an expression": ({"delay": "{{ _attempt + 0.5 }}"}, [1.5, 2.5, 3.5]),
    "at once": ({}, []),
}


@pytest.mark.rule("TASK-3", "SCOPE-3")
@pytest.mark.parametrize(("then", "pauses"), RETRY.values(), ids=RETRY)
def test_retry(then: Tree, pauses: list[float]) -> None:
    rules = [when("outcome.error.retryable", "retry", attempts=4, **then)]
    busy = error("http", retryable=True)
    ran = (
        alone(call("fetch", *rules, body="{{ _attempt }}"))
        .answers("fetch", busy, busy, busy, ok("at last"))
        .run()
    )
    assert ran.status == "completed"
    assert ran.result == "at last"
    assert ran.inputs("fetch") == [1, 2, 3, 4]
    assert ran.pauses == pauses
    assert [event.attempt for event in ran.of(e.TaskDone)] == [1, 2, 3, 4]
    assert [event.delay for event in ran.of(e.TaskDone)] == [*(pauses or [0, 0, 0]), 0]
    assert len({event.task_run_id for event in ran.of(e.TaskDone)}) == 1


@pytest.mark.rule("TASK-3", "OUT-4")
@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_retries_run_out(attempts: int) -> None:
    ran = (
        alone(call("fetch", otherwise("retry", attempts=attempts)))
        .answers("fetch", error("http", "busy", http={"status": 503}))
        .run()
    )
    assert len(ran.calls) == attempts
    assert ran.error["kind"] == "retry_exhausted"
    assert ran.error["message"].startswith(f"gave up after {attempts} attempt")
    assert ran.error["cause"] == {"kind": "http", "message": "busy", "retryable": False}
    assert ran.of(e.TaskDone)[-1].do == "fail"


JITTER = [(0.0, 0.0, 10.0), (0.5, 0.0, 5.0), (0.5, 1.0, 15.0), (0.5, 0.5, 10.0), (1.0, 0.0, 0.0)]


@pytest.mark.rule("TASK-3")
@pytest.mark.parametrize(("jitter", "chance", "seconds"), JITTER)
def test_jitter_moves_a_pause_by_its_fraction(jitter: float, chance: float, seconds: float) -> None:
    assert pause("none", 10.0, attempt=1, jitter=jitter, chance=chance) == seconds


@pytest.mark.rule("TASK-3")
@pytest.mark.parametrize("backoff", ["none", "linear", "exponential"])
def test_max_delay_holds_with_jitter_too(backoff: Backoff) -> None:
    waits = [pause(backoff, 9, attempt=9, max_delay=10, jitter=0.5, chance=c) for c in (0, 1)]
    assert waits == [4.5 if backoff == "none" else 5.0, 10]


@pytest.mark.rule("TASK-3")
def test_a_thousand_attempts_give_a_pause_that_a_clock_can_hold() -> None:
    assert pause("exponential", 1.0, attempt=5000) < 4e8


POLL = [
    when("outcome.result.ready", "continue"),
    otherwise("jump", to="check", delay="{{ workload.every }}"),
]


@pytest.mark.rule("TASK-4", "TASK-8", "SCOPE-3")
def test_a_jump_with_a_delay_polls() -> None:
    ran = (
        alone(
            call("submit"),
            call("check", *POLL, body="{{ [_prev, _attempt] }}"),
            call("use", body="{{ _prev }}"),
            workload={"every": 30},
        )
        .answers("submit", ok("job"))
        .answers("check", ok({"ready": False}), ok({"ready": False}), ok({"ready": True}))
        .run()
    )
    assert ran.pauses == [30, 30]
    waiting = {"ready": False}
    assert ran.inputs("check") == [["job", 1], [waiting, 1], [waiting, 1]]
    assert ran.inputs("use") == [{"ready": True}]
    ids = [event.task_run_id for event in ran.of(e.TaskDone, task="check")]
    assert len(set(ids)) == 3, "each arrival is a task run of its own"
    suspended = ran.of(e.TaskSuspended)
    assert [(event.reason, event.task) for event in suspended] == [("jump", "check")] * 2
    assert [event.task_run_id for event in suspended] == ids[1:], "what waits is what comes next"


@pytest.mark.rule("TASK-4")
def test_a_jump_starts_with_fresh_attempts() -> None:
    rules = [
        when("outcome.status == 'error'", "retry", attempts=2),
        when("iter.again is undefined", "jump", to="fetch", set_iter={"again": True}),
    ]
    bad = error("http")
    ran = alone(call("fetch", *rules)).answers("fetch", bad, ok(), bad, ok("end")).run()
    assert [event.attempt for event in ran.of(e.TaskDone)] == [1, 2, 1, 2]
    assert ran.result == "end"


@pytest.mark.rule("TASK-4", "DOC-4")
def test_a_jump_without_end_meets_its_limit() -> None:
    ran = alone(
        noop("turn", otherwise("jump", to="turn")),
        executor={"spec": {"policy": {"limits": {"max_task_runs": 7}}}},
    ).run()
    assert ran.error["kind"] == "limit"
    assert "max_task_runs" in ran.error["message"]
    assert len(ran.of(e.TaskDone)) == 7


@pytest.mark.rule("TASK-5", "SCOPE-2", "SCOPE-4", "SCOPE-5")
@pytest.mark.parametrize("do", ["continue", "break", "jump", "retry", "fail"])
def test_sets_come_before_the_directive(do: str) -> None:
    orders: dict[str, Tree] = {"jump": {"to": "end"}, "retry": {"attempts": 2}}
    more = orders.get(do, {})
    sets_: Tree = {
        "set_ctx": {"seen": "{{ outcome.result.n }}"},
        "set_iter": {"mine": "{{ outcome.result.n + 1 }}"},
        "set_prev": "{{ outcome.result.n + 2 }}",
    }
    first = call("first", when("_attempt == 1", do, **more, **sets_), otherwise())
    last = call("end", otherwise(), body="{{ [ctx.seen, iter.mine, _prev] }}")
    ran = alone(first, last).answers("first", ok({"n": 1}), ok("again")).run()
    assert ran.ctx == {"seen": 1}
    assert ran.of(e.CtxPatched)[0].patch == {"seen": 1}
    expected = {"continue": [[1, 2, 3]], "jump": [[1, 2, 3]], "retry": [[1, 2, "again"]]}
    assert ran.inputs("end") == expected.get(do, [])
    if do == "break":
        assert ran.result == 3


@pytest.mark.rule("TASK-6", "EVT-2")
def test_a_step_without_tool_never_visits_a_worker() -> None:
    ran = scenario(step("start", arcs=[arc("end")]), step("end", arcs=[])).run()
    assert ran.names == [
        "playbook.execution.requested",
        "playbook.request.evaluated",
        "workflow.started",
        "token.created",
        "step.scheduled",
        "step.done",
        "next.evaluated",
        "next.fired",
        "token.created",
        "step.scheduled",
        "step.done",
        "next.evaluated",
        "workflow.finished",
        "playbook.processed",
    ]


@pytest.mark.rule("TASK-7", "OUT-4")
@pytest.mark.parametrize("limit", [0.01, {"total": 0.01}])
def test_a_timeout_ends_the_tool(limit: Any) -> None:
    silence = Silence()
    ran = alone(call("fetch", timeout=limit)).answers("fetch", silence).run()
    assert silence.cancelled == 1
    assert ran.error["kind"] == "timeout"
    assert ran.error["retryable"] is True
    assert ran.one(e.TaskDone).outcome["error"]["kind"] == "timeout"


@pytest.mark.rule("TASK-7")
def test_a_timeout_may_come_of_a_template() -> None:
    timed = call("fetch", timeout="{{ workload.seconds }}")
    (call_,) = scenario(step("start", timed), workload={"seconds": "2.5"}).run().calls
    assert call_.timeout.total == 2.5


@pytest.mark.rule("TASK-7", "TPL-3")
@pytest.mark.parametrize("seconds", [-1, True, "soon", None])
def test_a_timeout_that_is_no_number_of_seconds(seconds: Any) -> None:
    timed = call("fetch", timeout="{{ workload.seconds }}")
    ran = scenario(step("start", timed), workload={"seconds": seconds}).run()
    assert (ran.calls, ran.error["kind"]) == ([], "template")
    assert "`timeout` must be a number of seconds" in ran.error["message"]


@pytest.mark.rule("TASK-7", "TOOL-2")
@pytest.mark.parametrize(
    ("own", "lent", "total"),
    [
        ("{{ workload.a }}", "{{ args.b }}", 1),
        (None, "{{ args.b }}", 2),
        (3, "{{ args.b }}", 3),
        ("{{ workload.a }}", 4, 1),
    ],
)
def test_the_timeout_of_a_lent_task(own: Any, lent: Any, total: float) -> None:
    shared = call("shared", timeout=lent)["shared"]
    spec = {} if own is None else {"spec": {"timeout": own}}
    borrowed = {"get": {"kind": "workbook", "name": "shared", "args": {"b": 2}, **spec}}
    told = scenario(
        step("start", borrowed), workload={"a": 1}, workbook={"tasks": {"shared": shared}}
    )
    (call_,) = told.run().calls
    assert call_.timeout.total == total


@pytest.mark.rule("TASK-7", "TASK-11")
def test_a_tool_is_told_its_knobs() -> None:
    spec = {"timeout": {"connect": 1, "read": 2}, "pool": 4, "client_retries": 3}
    text = {"fetch": {"kind": "http", "url": "x", "spec": spec}}
    (call_,) = alone(text).run().calls
    assert (call_.timeout.connect, call_.timeout.read, call_.timeout.total) == (1, 2, None)
    assert (call_.pool, call_.client_retries) == (4, 3)


@pytest.mark.rule("TASK-10")
def test_a_step_has_a_timeout_of_its_own() -> None:
    silence = Silence()
    ran = (
        scenario(step("start", call("one"), call("two"), timeout=0.01))
        .answers("two", silence)
        .run()
    )
    assert silence.cancelled == 1
    assert (ran.error["kind"], ran.error["step"]) == ("timeout", "start")
    assert "took longer than its timeout" in ran.error["message"]
    assert ran.story("start")[-2:] == ["task.started", "step.failed"]


@pytest.mark.rule("TASK-10", "LOOP-4")
@pytest.mark.parametrize("where", ["local", "distributed"])
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
@pytest.mark.parametrize("on_failure", ["stop", "continue"])
def test_the_timeout_of_a_step_bounds_its_whole_loop(
    mode: str, where: str, on_failure: str
) -> None:
    silence = Silence()
    looped = loop([1, 2, 3], mode=mode, flight=2, exec=where, on_failure=on_failure)
    made = scenario(step("start", call("one"), loop=looped, timeout=0.5))
    ran = made.answers("one", ok(), silence).run()
    assert silence.cancelled >= 1
    assert (ran.error["kind"], ran.error["step"]) == ("timeout", "start")
    assert len(ran.of(e.StepFailed)) == 1
    assert ran.of(e.LoopDone) == []


@pytest.mark.rule("TASK-8")
@pytest.mark.parametrize(("delay", "noted"), [(1, 0), (60, 1)])
def test_a_long_pause_is_in_the_log(delay: int, noted: int) -> None:
    rules = [when("_attempt == 1", "retry", attempts=2, delay=delay)]
    ran = alone(call("fetch", *rules)).run()
    assert len(ran.of(e.TaskSuspended)) == noted
    assert ran.pauses == [delay]
    for event in ran.of(e.TaskSuspended):
        assert (event.reason, event.task) == ("retry", "fetch")
        assert event.due > 60_000
    assert ran.execution.runs == {}


@pytest.mark.rule("TASK-8")
def test_a_pause_holds_no_slot() -> None:
    """One slot: the second step's tool runs while the first waits for its retry."""
    order: list[str] = []
    both = Scenario(
        step("start", arcs=[arc("a"), arc("b")], mode="inclusive"),
        step("a", call("slow", when("_attempt == 1", "retry", attempts=2, delay=1))),
        step("b", call("quick")),
    )

    def told(name: str) -> Any:
        async def answer(call: Any) -> Outcome:
            order.append(f"{name}{call.attempt}")
            return ok()

        return answer

    held = asyncio.Event()

    async def sleep(seconds: float) -> None:
        del seconds
        await held.wait()

    async def go(local: LocalNode, active: ActiveExecution) -> None:
        del active
        local.worker.sleep = sleep
        while "quick1" not in order:
            await asyncio.sleep(0)
        held.set()

    both.answers("slow", told("slow")).answers("quick", told("quick")).act(go)
    assert order == ["slow1", "quick1", "slow2"]


CRASHES: dict[str, list[Tree]] = {
    "plain": [call("one"), call("two"), call("three")],
    "retries": [call("one", when("_attempt < 3", "retry", attempts=3)), call("two")],
    "jumps": [
        call("one"),
        call("two", when("iter.n is undefined", "jump", to="one", set_iter={"n": 1})),
    ],
    "break": [call("one", otherwise("break", set_ctx={"x": 1})), call("never")],
    "fail": [call("one", otherwise("fail", set_ctx={"x": 1})), call("never")],
    "prev": [call("one", otherwise(set_prev=7)), call("two", body="{{ _prev }}")],
}


@pytest.mark.rule("TASK-9", "EVT-5")
@pytest.mark.parametrize("tasks", CRASHES.values(), ids=CRASHES)
@pytest.mark.unproven
def test_a_recorded_task_never_runs_again(tasks: list[Tree]) -> None:
    whole = alone(*tasks).run()
    for cut in crash_everywhere(lambda: alone(*tasks)):
        assert cut.status == whole.status, cut.where
        assert cut.ctx == whole.ctx, cut.where
        assert cut.result == whole.result, cut.where
        assert cut.outcomes == outcomes_in(whole.events), cut.where
        assert cut.twice == 0, f"{cut.where}: a recorded task ran again"


@pytest.mark.rule("TASK-9")
@pytest.mark.unproven
def test_the_idempotency_key_is_the_same_on_every_attempt_and_redelivery() -> None:
    tasks = [call("one", when("_attempt == 1", "retry", attempts=2)), call("two")]
    ran = alone(*tasks).run()
    keys = [call_.idempotency_key for call_ in ran.calls]
    assert keys[0] == keys[1] != keys[2]
    for cut in crash_everywhere(lambda: alone(*tasks)):
        assert {call_.idempotency_key for call_ in cut.calls} == set(keys), cut.where


@pytest.mark.rule("TASK-9")
def test_task_done_holds_all_that_resuming_needs() -> None:
    rule = otherwise("jump", to="end", delay=1, set_ctx={"a": 1}, set_iter={"b": 2}, set_prev=3)
    ran = alone(call("first", rule), noop("end")).run()
    done = ran.of(e.TaskDone)[0]
    assert (done.do, done.to, done.rule, done.delay) == ("jump", "end", 0, 1)
    assert (done.set_ctx, done.set_iter, done.set_prev) == ({"a": 1}, {"b": 2}, 3)
    assert done.outcome["result"] == "first"
    assert name_of(done) == "task.done"


@pytest.mark.rule("TASK-9")
def test_an_outcome_is_committed_before_the_next_effect() -> None:
    """When the second tool is called the first one's outcome is in the log."""
    made = alone(call("one"), task("two", "http", url="x")).carefully()
    found: list[int] = []

    def look(call_: Any) -> Outcome:
        rows = made.home.tables.decisions[call_.execution_id]
        found.append(sum(row.events.count(b'"task.done"') for row in rows))
        return ok()

    made.answers("two", look).run()
    assert found == [1]
