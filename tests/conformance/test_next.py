"""NEXT: which arcs fire, and how an execution ends. Joins have a page of their own."""

import asyncio

import pytest
from tests.support.canned import Silence
from tests.support.scenario import Gate, Ran, error, ok, scenario
from tests.support.steps import Tree, arc, call, loop, noop, otherwise, step

from noetl.errors import PlaybookRejected
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.node.local import LocalNode
from noetl.server.active import ActiveExecution

ENDS = [step("left", noop("l")), step("right", noop("r"))]


def fired(ran: Ran) -> list[str]:
    return [event.to for event in ran.of(e.NextFired)]


MODES: dict[str, tuple[str | None, list[Tree], list[str]]] = {
    "the default is exclusive": (None, [arc("left"), arc("right")], ["left"]),
    "exclusive takes the first match": (
        "exclusive",
        [arc("left", False), arc("right", True), arc("left", True)],
        ["right"],
    ),
    "inclusive takes every match": (
        "inclusive",
        [arc("right", True), arc("left"), arc("right", False)],
        ["right", "left"],
    ),
    "no match ends the branch": ("inclusive", [arc("left", False)], []),
    "an undefined name is false": (
        None,
        [arc("left", "ctx.nothing.there"), arc("right")],
        ["right"],
    ),
}


@pytest.mark.rule("NEXT-1", "NEXT-5")
@pytest.mark.parametrize(("mode", "arcs", "expected"), MODES.values(), ids=MODES)
def test_modes(mode: str | None, arcs: list[Tree], expected: list[str]) -> None:
    ran = scenario(step("start", noop("s"), arcs=arcs, mode=mode), *ENDS).run()
    assert fired(ran) == expected
    assert [event.step for event in ran.of(e.TokenCreated)] == ["start", *expected]
    assert sorted(ran.steps) == sorted(["start", *expected])
    assert ran.status == "completed"


GUARDS = {
    "name": "event.name == 'step.done'",
    "an older name": "event.name == 'StepDone'",
    "an older name, the other way round": "'call.done' == event.name",
    "one of several": "event.name in ['StepFailed', 'StepDone']",
    "not another": "event.name != 'StepFailed'",
    "step": "event.step == 'start'",
    "result": "event.result.rows == 2",
    "no error": "event.error is none and event.loop is none",
    "ctx": "ctx.seen == 1",
    "workload": "workload.limit == 3",
    "args": "args == {}",
    "execution_id": "execution_id == 'x1'",
    "a bare name": "seen == 1 and limit == 3",
}


@pytest.mark.rule("NEXT-2", "EVT-2")
@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
def test_what_arcs_see(guard: str) -> None:
    work = call("fetch", otherwise(set_ctx={"seen": 1}))
    ran = (
        scenario(
            step("start", work, arcs=[arc("left", guard), arc("right")]),
            *ENDS,
            workload={"limit": 3},
        )
        .answers("fetch", ok({"rows": 2}))
        .run()
    )
    assert fired(ran) == ["left"]


@pytest.mark.rule("NEXT-2", "VAL-5")
@pytest.mark.parametrize("name", ["_prev", "_task", "_attempt", "outcome", "iter"])
def test_arcs_see_no_local_of_the_pipeline(name: str) -> None:
    with pytest.raises(PlaybookRejected) as refused:
        scenario(step("start", noop("s"), arcs=[arc("left", f"{name} == 1")]), *ENDS)
    assert refused.value.findings[0].message == f"'{name}' is undefined here"


AFTER_FAILURE: dict[str, tuple[list[Tree], str | None, list[str], str]] = {
    "an arc without `when` is not a way out": ([arc("left")], None, [], "failed"),
    "a guard is": ([arc("left"), arc("right", True)], None, ["right"], "completed"),
    "a guard on the event": (
        [arc("left", "event.name == 'step.failed' and event.error.kind == 'http'")],
        None,
        ["left"],
        "completed",
    ),
    "a guard that does not match": ([arc("left", "event.name == 'step.done'")], None, [], "failed"),
    "on_failure all": ([arc("left"), arc("right", True)], "all", ["left"], "completed"),
}


@pytest.mark.rule("NEXT-3", "NEXT-5")
@pytest.mark.parametrize(
    ("arcs", "on_failure", "expected", "status"), AFTER_FAILURE.values(), ids=AFTER_FAILURE
)
def test_after_a_failure(
    arcs: list[Tree], on_failure: str | None, expected: list[str], status: str
) -> None:
    ran = (
        scenario(step("start", call("fetch"), arcs=arcs, on_failure=on_failure), *ENDS)
        .answers("fetch", error("http", "no luck"))
        .run()
    )
    assert fired(ran) == expected
    assert ran.one(e.NextEvaluated).on == "step.failed"
    assert ran.status == status
    if status == "failed":
        assert ran.error == {
            "step": "start",
            "kind": "http",
            "message": "no luck",
            "retryable": False,
        }


@pytest.mark.rule("NEXT-4", "SCOPE-1")
def test_args_are_rendered_into_the_token() -> None:
    ran = (
        scenario(
            step(
                "start",
                call("fetch"),
                arcs=[arc("next", n="{{ event.result.n + 1 }}", text="{{7*7}} of", plain="x")],
            ),
            step("next", call("show", body="{{ args }}"), arcs=[arc("after", only="{{ args.n }}")]),
            step("after", call("last", body="{{ args }}")),
        )
        .answers("fetch", ok({"n": 1}))
        .run()
    )
    assert ran.inputs("show") == [{"n": 2, "text": "49 of", "plain": "x"}]
    assert ran.inputs("last") == [{"only": 2}], "args belong to one token"


BROKEN = {
    "args": (arc("left", None, n="{{ event.result.nothing }}"), "`args` of arc 1 to step 'left'"),
    "when": (arc("left", "'a' < 3"), "`when` of arc 1 to step 'left'"),
}


@pytest.mark.rule("NEXT-4", "TPL-3")
@pytest.mark.parametrize(("broken", "where"), BROKEN.values(), ids=BROKEN)
def test_an_arc_that_cannot_be_evaluated_fails_the_execution(broken: Tree, where: str) -> None:
    ran = scenario(step("start", noop("s"), arcs=[broken]), *ENDS).run()
    assert ran.status == "failed"
    assert (ran.error["kind"], ran.error["arc"], ran.error["to"]) == ("template", 0, "left")
    assert ran.error["message"].startswith(where)
    assert ran.names[-3:] == ["next.evaluated", "workflow.finished", "playbook.processed"]
    assert fired(ran) == []


@pytest.mark.rule("NEXT-5")
def test_other_branches_run_to_their_end() -> None:
    ran = (
        scenario(
            step("start", arcs=[arc("bad"), arc("good")], mode="inclusive"),
            step("bad", call("break_")),
            step("good", call("work"), arcs=[arc("more")]),
            step("more", call("work_more")),
        )
        .answers("break_", error("http"))
        .run()
    )
    assert ran.status == "failed"
    assert sorted(ran.labels()) == ["break_", "work", "work_more"]
    assert ran.steps["more"] == (1, 0, "done")
    assert ran.one(e.WorkflowFinished).failures == 1


@pytest.mark.rule("NEXT-5", "NEXT-8")
def test_fail_fast_starts_nothing_new_and_cancels_what_runs() -> None:
    silence = Silence()
    gate = Gate(error("http"))

    async def fail(local: LocalNode, active: ActiveExecution) -> None:
        del local, active
        (held,) = await gate.held(1)
        await gate.let_go(held)

    ran = (
        scenario(
            step("start", arcs=[arc("bad"), arc("slow")], mode="inclusive"),
            step("bad", call("break_")),
            step("slow", call("wait_"), arcs=[arc("more", True)]),
            step("more", call("never")),
            executor={"spec": {"policy": {"fail_fast": True}}},
        )
        .answers("break_", gate)
        .answers("wait_", silence)
        .act(fail)
    )
    assert ran.status == "failed"
    assert ran.error["step"] == "bad"
    assert ran.one(e.ExecutionCancelled).by == "fail_fast"
    assert silence.cancelled == 1
    assert ran.steps["slow"] == (1, 1, "cancelled")
    assert "more" not in ran.steps


@pytest.mark.rule("NEXT-5")
def test_arcs_may_point_backwards() -> None:
    ran = scenario(
        step(
            "start",
            call("turn", otherwise(set_ctx={"n": "{{ (ctx.n | default(0)) + 1 }}"})),
            arcs=[arc("start", "ctx.n < 4")],
        )
    ).run()
    assert ran.steps["start"] == (4, 0, "done")
    assert ran.ctx == {"n": 4}
    runs = [event.step_run_id for event in ran.of(e.StepScheduled)]
    assert len(set(runs)) == 4


@pytest.mark.rule("NEXT-5", "DOC-4")
def test_a_cycle_without_end_meets_its_limit() -> None:
    ran = scenario(
        step("start", arcs=[arc("start")]),
        executor={"spec": {"policy": {"limits": {"max_step_runs": 5}}}},
    ).run()
    assert ran.status == "failed"
    assert (ran.error["kind"], ran.error["step"]) == ("limit", "start")
    assert "max_step_runs" in ran.error["message"]
    assert ran.steps["start"] == (5, 0, "done")
    assert ran.names[-3:] == ["token.dropped", "workflow.finished", "playbook.processed"]


FINAL = {"spec": {"final_step": "last"}}


@pytest.mark.rule("NEXT-6")
def test_the_final_step_runs_once_when_nothing_else_can() -> None:
    ran = scenario(
        step("start", arcs=[arc("left"), arc("right")], mode="inclusive"),
        step("left", noop("l")),
        step("right", call("fetch")),
        step("last", call("tidy", body="{{ args }}")),
        executor=FINAL,
    ).run()
    steps = {
        name: {"runs": 1, "failed": 0, "status": "done"} for name in ("start", "left", "right")
    }
    assert ran.inputs("tidy") == [{"status": "completed", "steps": steps, "failures": []}]
    assert ran.labels() == ["fetch", "tidy"]
    assert ran.result == {"left": None, "right": "fetch"}, "the final step is not a leaf"


@pytest.mark.rule("NEXT-6")
def test_the_final_step_is_told_of_failures() -> None:
    ran = (
        scenario(
            step("start", call("fetch")),
            step("last", call("tidy", body="{{ args }}")),
            executor=FINAL,
        )
        .answers("fetch", error("http"))
        .run()
    )
    (told,) = ran.inputs("tidy")
    assert told["status"] == "failed"
    assert told["steps"] == {"start": {"runs": 1, "failed": 1, "status": "failed"}}
    assert [(failure["step"], failure["error"]["kind"]) for failure in told["failures"]] == [
        ("start", "http")
    ]
    assert ran.status == "failed"


@pytest.mark.rule("NEXT-6")
def test_a_failure_of_the_final_step_fails_the_execution() -> None:
    ran = (
        scenario(step("start", noop("s")), step("last", call("tidy")), executor=FINAL)
        .answers("tidy", error("http"))
        .run()
    )
    assert (ran.status, ran.error["step"]) == ("failed", "last")
    assert ran.steps["last"] == (1, 1, "failed")


@pytest.mark.rule("NEXT-6", "DOC-4", "LOOP-2")
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_the_final_step_runs_after_a_timeout(mode: str) -> None:
    silence = Silence()

    async def time_passes(local: LocalNode, active: ActiveExecution) -> None:
        await asyncio.sleep(0)
        local.server.receive(active, r.TimeIsUp(seconds=30))

    ran = (
        scenario(
            step("start", call("fetch"), arcs=[arc("never", True)]),
            step("never", noop("n")),
            step("last", call("tidy", body="{{ iter.n }}"), loop=loop([1, 2, 3], mode=mode)),
            executor={"spec": {"final_step": "last", "policy": {"limits": {"timeout": 30}}}},
        )
        .answers("fetch", silence)
        .act(time_passes)
    )
    assert silence.cancelled == 1
    assert ran.status == "failed"
    assert ran.error["kind"] == "timeout"
    assert sorted(ran.inputs("tidy")) == [1, 2, 3]
    assert ran.steps == {"start": (1, 1, "cancelled"), "last": (1, 0, "done")}


@pytest.mark.rule("NEXT-8", "NEXT-6")
def test_cancel() -> None:
    silence = Silence()

    async def cancel(local: LocalNode, active: ActiveExecution) -> None:
        await asyncio.sleep(0)
        local.server.receive(active, r.CancelExecution(reason="enough"))

    ran = (
        scenario(
            step("start", call("fetch"), arcs=[arc("never", True)]),
            step("never", noop("n")),
            step("last", call("tidy")),
            executor=FINAL,
        )
        .answers("fetch", silence)
        .act(cancel)
    )
    assert ran.names == [
        "playbook.execution.requested",
        "playbook.request.evaluated",
        "workflow.started",
        "token.created",
        "step.scheduled",
        "token.enqueued",
        "execution.cancelled",
        "token.claimed",
        "step.started",
        "task.started",
        "step.failed",
        "next.evaluated",
        "workflow.finished",
        "playbook.processed",
    ]
    assert silence.cancelled == 1
    assert ran.one(e.StepFailed).error["kind"] == "cancelled"
    assert ran.status == "cancelled"


@pytest.mark.rule("NEXT-8")
def test_what_was_offered_and_not_begun_is_never_begun() -> None:
    async def cancel(local: LocalNode, active: ActiveExecution) -> None:
        local.server.receive(active, r.CancelExecution())

    ran = scenario(step("start", call("fetch"))).act(cancel)
    assert ran.calls == []
    assert ran.one(e.StepFailed).error["kind"] == "cancelled"
    assert ran.status == "cancelled"


@pytest.mark.rule("NEXT-8")
def test_after_the_end_every_report_is_refused() -> None:
    ended: list[list[e.Event] | None] = []

    async def report_late(local: LocalNode, active: ActiveExecution) -> None:
        await active.finished
        late = r.Report(step_run_id="4.0", part=0, epoch=9, worker="w", events=[])
        for given in (late, r.CancelExecution(), r.PauseExecution(), r.TimeIsUp(seconds=1)):
            ended.append(local.server.receive(active, given).events)

    ran = scenario(step("start", noop("s"))).act(report_late)
    assert ended == [[], [], [], []]
    assert ran.status == "completed"


@pytest.mark.rule("NEXT-5")
def test_pause_holds_tokens_and_resume_lets_them_go() -> None:
    gate = Gate()

    async def pause(local: LocalNode, active: ActiveExecution) -> None:
        (held,) = await gate.held(1)
        local.server.receive(active, r.PauseExecution())
        assert active.execution.status == "paused"
        await gate.let_go(held)
        assert active.execution.runs == {}
        local.server.receive(active, r.ResumeExecution())

    ran = (
        scenario(step("start", call("fetch"), arcs=[arc("more")]), step("more", noop("m")))
        .answers("fetch", gate)
        .act(pause)
    )
    assert ran.story("more")[:3] == ["token.created", "token.parked", "step.scheduled"]
    assert ran.one(e.TokenParked).reason == "paused"
    assert ran.status == "completed"


@pytest.mark.rule("NEXT-4")
def test_each_token_carries_the_args_of_its_own_arc() -> None:
    ways = [arc("left", way="{{ event.name }}"), arc("right", way=2)]
    ran = scenario(step("start", noop("s"), arcs=ways, mode="inclusive"), *ENDS).run()
    carried = {event.step: event.args for event in ran.of(e.TokenCreated) if event.source}
    assert carried == {"left": {"way": "step.done"}, "right": {"way": 2}}
