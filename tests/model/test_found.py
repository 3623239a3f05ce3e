"""What the reference model found in the engine, each as the smallest playbook that shows it."""

from typing import Any, cast

import pytest
from tests.support.cluster import until
from tests.support.scenario import Gate, error, ok, scenario
from tests.support.steps import arc, call, loop, nested, noop, otherwise, sets, step, when
from tests.support.waiting import waits

from noetl.control.limits import waiting
from noetl.control.waits_held import pending
from noetl.errors import ServerRefused
from noetl.messages import events as e
from noetl.messages.requests import SendSignal
from noetl.node.local import LocalNode
from noetl.ports.limits import LimitClaim
from noetl.server.active import ActiveExecution

SEEN = "{{ [ctx.k, ctx.new | default('none')] }}"


@pytest.mark.rule("TASK-3", "WAIT-1")
def test_a_retried_wait_waits_again() -> None:
    """The second attempt was given what the first one had waited for, and waited for nothing."""
    again = when("outcome.status == 'error'", "retry", attempts=3)
    ran = scenario(step("start", waits("ask", again, signal="go", timeout=0.001))).run()
    assert [event.attempt for event in ran.of(e.WaitStarted)] == [1, 2, 3]
    assert [event.by for event in ran.of(e.WaitDone)] == ["timeout"] * 3
    assert ran.error["kind"] == "retry_exhausted"


@pytest.mark.rule("NEXT-6", "NEXT-5")
def test_what_stops_the_others_leaves_the_final_step_alone() -> None:
    """The order to stop reached the final step, which the same decision had begun."""
    found = scenario(
        step("start", waits("rest", seconds=0.002), noop("fail", otherwise("fail"))),
        step("last", call("tidy"), call("up")),
        executor={"spec": {"final_step": "last", "policy": {"fail_fast": True}}},
    )
    ran = found.run()
    assert ran.error["kind"] == "policy"
    assert ran.of(e.ExecutionCancelled, by="fail_fast") != []
    assert ran.labels() == ["tidy", "up"]
    assert ran.steps["last"] == (1, 0, "done")


@pytest.mark.rule("LOOP-5")
def test_a_loop_that_wrote_nothing_changes_nothing() -> None:
    """It put back the value that ctx had when it began, over what others wrote meanwhile."""
    gate = Gate(ok(1))
    counting = loop([1], reduce={"n": "count"})
    found = scenario(
        step("start", sets("begin", n=1), arcs=[arc("slow"), arc("quick")], mode="inclusive"),
        step("slow", call("hold"), loop=counting),
        step("quick", sets("write", n=2)),
    ).answers("hold", gate)

    async def story(local: LocalNode, active: ActiveExecution) -> None:
        del local
        (key,) = await gate.held(1)
        await until(lambda: active.execution.ctx == {"n": 2})
        await gate.let_go(key)

    assert found.act(story).ctx == {"n": 2}


@pytest.mark.rule("LOOP-5", "LOOP-7")
def test_a_nested_loop_that_wrote_nothing_changes_nothing() -> None:
    """The same of an `iterator` task: what it put back was a write like any other."""
    gate = Gate(ok(1))
    found = scenario(
        step("start", sets("begin", n=1), arcs=[arc("slow"), arc("quick")], mode="inclusive"),
        step("slow", nested("many", loop([1], reduce={"n": "last"}), call("hold"))),
        step("quick", sets("write", n=2)),
    ).answers("hold", gate)

    async def story(local: LocalNode, active: ActiveExecution) -> None:
        del local
        (key,) = await gate.held(1)
        await until(lambda: active.execution.ctx == {"n": 2})
        await gate.let_go(key)

    assert found.act(story).ctx == {"n": 2}


@pytest.mark.rule("LOOP-5")
def test_what_two_iterations_wrote_alike_neither_may_change() -> None:
    """The second one became the owner of the value, and could make another one of it."""
    writes = [
        noop("same", otherwise(set_ctx={"k": 1})),
        noop("other", when("iter.index == 1", set_ctx={"k": 2})),
    ]
    looped = loop([0, 1], mode="parallel", flight=1, exec="local", on_failure="continue")
    ran = scenario(step("start", *writes, loop=looped)).run()
    assert ran.ctx == {"k": 1}
    failed = ran.one(e.IterationFailed)
    assert (failed.index, failed.error["kind"]) == (1, "ctx_conflict")
    assert "several iterations wrote another value" in failed.error["message"]


@pytest.mark.rule("SCOPE-4", "LOOP-7")
def test_what_a_nested_iteration_wrote_is_seen_after_the_loop() -> None:
    """One that wrote nothing put back the value that it had begun with."""
    tasks = [
        sets("begin", k=0),
        nested(
            "inner",
            loop([0, 1], mode="parallel", flight=1),
            noop("write", when("iter.index == 0", set_ctx={"k": 1, "nothing": None})),
        ),
        sets("look", seen="{{ [ctx.k, ctx.nothing] }}"),
    ]
    ran = scenario(step("start", *tasks)).run()
    assert ran.ctx == {"k": 1, "nothing": None, "seen": [1, None]}


@pytest.mark.rule("SCOPE-4", "LOOP-7", "TASK-9")
@pytest.mark.parametrize("around", [None, "local", "distributed"])
def test_a_nested_iteration_sees_no_other_one_also_after_a_wait(around: str | None) -> None:
    """Whoever went on after the wait began the loop anew, with what its iterations had written."""
    inner = nested(
        "inner",
        loop([0, 1], iterator="m", mode="parallel", flight=1),
        noop("write", when("iter.index == 0", set_ctx={"k": 1, "new": 1})),
        waits("rest", seconds=0),
        noop("look", when("iter.index == 1", set_ctx={"seen": SEEN})),
    )
    outer = None if around is None else loop([0], mode="parallel", exec=around)
    ran = scenario(step("start", sets("begin", k=0), inner, loop=outer)).run()
    assert ran.ctx == {"k": 1, "new": 1, "seen": [0, "none"]}


@pytest.mark.rule("LOOP-5", "LOOP-6", "LOOP-4")
@pytest.mark.parametrize("where", ["local", "distributed"])
def test_what_ended_behind_an_iteration_that_did_not_counts(where: str) -> None:
    """A loop was cancelled: it counted iteration 1 as done, and lost its result and its writes."""
    gate = Gate(ok("b"))
    adding = call("add", otherwise(set_ctx={"total": 3, "seen": "{{ iter.n }}"}))
    reduce = {"total": "sum", "seen": "append"}
    looped = loop(["a", "b", "c"], mode="parallel", flight=3, exec=where, reduce=reduce)
    found = scenario(step("start", adding, loop=looped)).answers("add", gate)

    async def story(local: LocalNode, active: ActiveExecution) -> None:
        keys = {key: key.split(".")[1] for key in await gate.held(3)}
        (run,) = active.execution.runs.values()
        assert run.loop is not None
        loop_run = run.loop
        await gate.let_go(next(key for key, number in keys.items() if number == "2"))
        await until(lambda: loop_run.done == 1)
        await local.order("x1", "cancel")

    ran = found.act(story)
    assert ran.ctx == {"total": 3, "seen": ["b"]}
    summary = ran.one(e.StepFailed).loop
    assert summary is not None
    assert (summary["done"], summary["results"][:2]) == (1, [None, "b"])


@pytest.mark.rule("LOOP-5", "LOOP-6", "WAIT-2")
@pytest.mark.parametrize("where", ["local", "distributed"])
def test_what_ended_behind_an_iteration_that_waits_counts(where: str) -> None:
    """The same, where no worker holds the iteration that does not end."""
    tasks = [
        noop("pick", when("iter.index == 1", "jump", to="add")),
        waits("ask", signal="go"),
        noop("add", otherwise(set_ctx={"total": 3})),
    ]
    looped = loop(["a", "b"], mode="parallel", flight=2, exec=where, reduce={"total": "sum"})
    found = scenario(step("start", *tasks, loop=looped))

    async def story(local: LocalNode, active: ActiveExecution) -> None:
        loops = (run.loop for run in active.execution.runs.values())
        (loop_run,) = (one for one in loops if one is not None)
        await until(lambda: any(pending(active.execution)) and loop_run.done == 1)
        await local.order("x1", "cancel")

    ran = found.act(story)
    assert ran.ctx == {"total": 3}
    summary = ran.one(e.StepFailed).loop
    assert summary is not None
    assert (summary["done"], len(summary["results"])) == (1, 2)


@pytest.mark.rule("LIMIT-3")
def test_a_place_whose_token_is_dropped_is_free_again() -> None:
    """A token got its place and then was one too many: the place was held, and the rest hung."""
    again = [arc("turn"), arc("turn")]
    ran = scenario(
        step("start", arcs=[arc("turn")]),
        step("turn", arcs=again, mode="inclusive", limit={"at_once": 1}),
        executor={"spec": {"policy": {"limits": {"max_step_runs": 6}}}},
    ).run()
    assert ran.status == "failed"
    assert ran.steps["turn"] == (5, 0, "done")
    assert ran.error["kind"] == "limit"


@pytest.mark.rule("NEXT-5", "LIMIT-2")
def test_a_token_that_is_one_too_many_stops_the_others_at_once() -> None:
    """It had waited for its place: the others went on to their next end, and routed."""
    gate = Gate(ok(1))
    found = scenario(
        step("start", arcs=[arc("slow"), arc("turn")], mode="inclusive"),
        step("slow", call("hold"), arcs=[arc("after")]),
        step("turn", arcs=[arc("turn")], limit={"at_once": 1}),
        step("after", call("never")),
        executor={"spec": {"policy": {"fail_fast": True, "limits": {"max_step_runs": 4}}}},
    ).answers("hold", gate)

    async def story(local: LocalNode, active: ActiveExecution) -> None:
        del local
        await gate.held(1)
        await until(lambda: active.execution.failed)
        assert active.execution.stop == "fail_fast"

    ran = found.act(story)
    assert (ran.error["kind"], ran.labels()) == ("limit", ["hold"])


@pytest.mark.rule("LIMIT-3", "NEXT-7")
def test_tokens_that_meet_while_they_wait_for_a_place_need_one() -> None:
    """Each of them asked for a place; the one run took both tokens and gave one place back."""
    meets = {"from": ["a", "b"], "mode": "any"}
    ran = scenario(
        step("start", arcs=[arc("a"), arc("b")], mode="inclusive"),
        step("a", arcs=[arc("meet")]),
        step("b", arcs=[arc("meet")]),
        step(
            "meet",
            sets("count", n="{{ (ctx.n | default(0)) + 1 }}"),
            arcs=[arc("a", "ctx.n < 3")],
            join=meets,
            limit={"at_once": 1},
        ),
    ).run()
    assert (ran.status, ran.ctx) == ("completed", {"n": 3})


@pytest.mark.rule("LIMIT-3")
def test_a_place_that_is_asked_for_again_after_its_run_is_free() -> None:
    """Two tokens ask; the first has run when it asks the second time, and kept the place."""
    gate = Gate(ok(1), ok(2))
    found = scenario(
        step("start", arcs=[arc("a"), arc("b")], mode="inclusive"),
        step("a", call("work"), arcs=[arc("turn")]),
        step("b", call("work"), arcs=[arc("turn")]),
        step("turn", limit={"at_once": 1}, arcs=[arc("end")]),
        step("end", sets("count", n="{{ (ctx.n | default(0)) + 1 }}")),
    ).answers("work", gate)

    async def story(local: LocalNode, active: ActiveExecution) -> None:
        execution, limits = active.execution, cast(Any, local.storage.limits)
        take, asked = limits.take, 0

        def waits() -> int:
            return len(list(waiting(execution)))

        async def late(claims: list[LimitClaim]) -> list[int]:
            """The first question is answered when both wait, the next when one has run."""
            nonlocal asked
            asked += 1
            first = asked == 1
            await until((lambda: waits() == 2) if first else (lambda: waits() < 2))
            return cast(list[int], await take(claims))

        limits.take = late
        one, other = await gate.held(2)
        await gate.let_go(one)
        await until(lambda: asked == 1)
        await gate.let_go(other)
        await until(lambda: execution.finished)

    assert found.act(story).ctx == {"n": 2}


@pytest.mark.rule("WAIT-4", "NEXT-6")
def test_a_final_step_that_waits_is_told_what_it_waits_for() -> None:
    """After fail_fast every signal was refused, and the final step waited for ever."""
    found = scenario(
        step("start", call("work")),
        step("last", waits("ask", signal="go")),
        executor={"spec": {"final_step": "last", "policy": {"fail_fast": True}}},
    ).answers("work", error("http"))

    async def story(local: LocalNode, active: ActiveExecution) -> None:
        await until(lambda: any(pending(active.execution)))
        with pytest.raises(ServerRefused, match="nothing will take it"):
            await local.signal("x1", SendSignal(signal="other"))
        await local.signal("x1", SendSignal(signal="go", data=7))

    ran = found.act(story)
    assert ran.one(e.StepDone, step="last").result == 7
