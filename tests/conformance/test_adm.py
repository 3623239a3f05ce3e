"""ADM: which tokens may fire, which wait, and what the log says of it."""

from typing import Any

import pytest
from tests.support.scenario import Ran, Scenario, ok, scenario
from tests.support.steps import Tree, allow, arc, call, noop, refuse, sets, step

from noetl.errors import PlaybookRejected
from noetl.messages import events as e


def gated(*rules: Tree, mode: str = "exclusive", **args: Any) -> Scenario:
    """`start` leads to `gate`, whose admission has these rules."""
    return scenario(
        step("start", arcs=[arc("gate", **args)]),
        step("gate", noop("work"), admit={"mode": mode, "rules": list(rules)}),
        workload={"open": True, "limit": 3},
    )


def verdicts(ran: Ran) -> list[tuple[bool, int | None]]:
    return [(event.allow, event.rule) for event in ran.of(e.AdmitEvaluated)]


EXCLUSIVE = {
    "the first match decides": ([refuse(True), allow(True)], (False, 0)),
    "a later match decides": ([refuse(False), allow(True)], (True, 1)),
    "else": ([allow(False), refuse()], (False, 1)),
    "no match allows": ([refuse(False)], (True, None)),
}
INCLUSIVE = {
    "one refusal refuses": ([allow(True), refuse(True)], (False, 1)),
    "every match allows": ([allow(True), allow(True)], (True, 0)),
    "what does not match does not count": ([allow(True), refuse(False)], (True, 0)),
    "no match allows": ([refuse(False)], (True, None)),
}


@pytest.mark.rule("ADM-1", "ADM-4")
@pytest.mark.parametrize(("rules", "verdict"), EXCLUSIVE.values(), ids=EXCLUSIVE)
def test_exclusive(rules: list[Tree], verdict: tuple[bool, int | None]) -> None:
    ran = gated(*rules).run()
    assert verdicts(ran) == [verdict]
    assert ("gate" in ran.steps) is verdict[0]
    assert ran.status == "completed", "a dropped token does not fail an execution"


@pytest.mark.rule("ADM-1", "ADM-4")
@pytest.mark.parametrize(("rules", "verdict"), INCLUSIVE.values(), ids=INCLUSIVE)
def test_inclusive(rules: list[Tree], verdict: tuple[bool, int | None]) -> None:
    ran = gated(*rules, mode="inclusive").run()
    assert verdicts(ran) == [verdict]
    assert ("gate" in ran.steps) is verdict[0]


@pytest.mark.rule("ADM-1", "EVT-2")
def test_a_step_without_admit_is_never_asked() -> None:
    ran = scenario(step("start", noop("work"))).run()
    assert ran.of(e.AdmitEvaluated) == []
    assert ran.status == "completed"


GUARDS = {
    "workload": ("workload.open and workload.limit == 3", True),
    "args": ("args.n == 7", True),
    "a bare name": ("n == 7 and limit == 3", True),
    "execution_id": ("execution_id == 'x1'", True),
    "ctx": ("ctx.missing", False),
    "event": ("event.name == 'token.created' and event.step == 'start'", True),
}


@pytest.mark.rule("ADM-2")
@pytest.mark.parametrize(("guard", "true"), GUARDS.values(), ids=GUARDS)
def test_what_rules_see(guard: str, true: bool) -> None:
    ran = gated(allow(guard), refuse(), n=7).run()
    assert verdicts(ran) == [(True, 0) if true else (False, 1)]


@pytest.mark.rule("ADM-2", "VAL-5")
@pytest.mark.parametrize("name", ["_prev", "_task", "_attempt", "outcome", "iter"])
def test_rules_see_no_local_of_the_pipeline(name: str) -> None:
    with pytest.raises(PlaybookRejected) as refused:
        gated(allow(f"{name} == 1"), refuse())
    assert [one.message for one in refused.value.findings] == [f"'{name}' is undefined here"]


def waiting(*, go: bool = True, **admit: Any) -> Scenario:
    """`gate` waits for ctx.go, which `open` sets after `turn` has set another key."""
    return scenario(
        step("start", arcs=[arc("gate"), arc("turn")], mode="inclusive"),
        step("gate", noop("enter"), admit={"rules": [allow("ctx.go"), refuse()], **admit}),
        step("turn", sets("other", other=1), arcs=[arc("open")]),
        step("open", sets("key", go=go)),
    )


@pytest.mark.rule("ADM-3", "ADM-4")
def test_a_refused_token_waits_for_a_key_that_its_rules_read() -> None:
    ran = waiting().run()
    assert ran.story("gate") == [
        "token.created",
        "policy.admit.evaluated",
        "token.parked",
        "policy.admit.evaluated",
        "step.scheduled",
        "token.enqueued",
        "token.claimed",
        "step.started",
        "task.started",
        "task.done",
        "step.done",
    ]
    assert verdicts(ran) == [(False, 1), (True, 0)]
    assert ran.one(e.TokenParked).reason == "refused"
    story = ran.story()
    assert story.index("step.scheduled gate") > story.index("step.done open")
    assert ran.steps["gate"] == (1, 0, "done")


@pytest.mark.rule("ADM-3")
def test_what_nothing_can_admit_any_more_is_dropped() -> None:
    ran = waiting(go=False).run()
    assert ran.story("gate") == [
        "token.created",
        "policy.admit.evaluated",
        "token.parked",
        "token.dropped",
    ], "a second refusal is not a changed verdict"
    assert ran.one(e.TokenDropped).reason == "nothing can end its wait (refused)"
    assert ran.names[-2:] == ["workflow.finished", "playbook.processed"]
    assert ran.status == "completed"


@pytest.mark.rule("ADM-3")
def test_on_deny_drop_drops_at_once() -> None:
    ran = waiting(on_deny="drop").run()
    assert ran.story("gate") == ["token.created", "policy.admit.evaluated", "token.dropped"]
    story = ran.story()
    assert story.index("token.dropped gate") < story.index("step.scheduled turn")
    assert ran.status == "completed"


@pytest.mark.rule("ADM-3", "NEXT-5")
def test_waiting_tokens_are_tried_in_order_and_each_by_itself() -> None:
    crowd = [arc("gate", n=1), arc("gate", n=2), arc("gate", n=3), arc("opener")]
    ran = (
        scenario(
            step("start", sets("seed", room=0), arcs=crowd, mode="inclusive"),
            step(
                "gate",
                call("enter", body="{{ args.n }}"),
                admit=[allow("args.n <= ctx.room"), refuse()],
            ),
            step("opener", sets("two", room=2)),
        )
        .answers("enter", ok())
        .run()
    )
    assert ran.inputs("enter") == [1, 2]
    assert [event.token_id for event in ran.of(e.TokenParked)] == [
        event.token_id for event in ran.of(e.TokenCreated, step="gate")
    ]
    assert len(ran.of(e.TokenDropped, step="gate")) == 1
    assert ran.steps["gate"] == (2, 0, "done")


@pytest.mark.rule("ADM-2", "TPL-3")
def test_a_rule_that_cannot_be_evaluated_fails_the_execution() -> None:
    ran = gated(allow("'a' < args.n"), n=1).run()
    assert ran.status == "failed"
    assert (ran.error["kind"], ran.error["step"]) == ("template", "gate")
    assert "an admission rule of step 'gate'" in ran.error["message"]
    assert ran.story("gate") == ["token.created", "policy.admit.evaluated", "token.dropped"]


@pytest.mark.rule("ADM-3")
def test_a_refused_token_is_not_asked_again_for_other_keys() -> None:
    """`other` is written while the token waits: nobody looks at its rules, and nothing is said."""
    asked = scenario(
        step("start", arcs=[arc("gate"), arc("turn")], mode="inclusive"),
        step("gate", noop("enter"), admit=[allow("ctx.go or 'a' < ctx.other"), refuse()]),
        step("turn", sets("unrelated", noise=1), arcs=[arc("open")]),
        step("open", sets("key", go=True)),
    ).run()
    assert asked.status == "completed"
    assert verdicts(asked) == [(False, 1), (True, 0)]


@pytest.mark.rule("ADM-3", "NEXT-6")
def test_a_final_step_that_is_refused_is_dropped_once() -> None:
    ran = scenario(
        step("start", noop("work")),
        step("last", noop("tidy"), admit=[refuse(True)]),
        executor={"spec": {"final_step": "last"}},
    ).run()
    assert ran.story("last") == [
        "token.created",
        "policy.admit.evaluated",
        "token.parked",
        "token.dropped",
    ]
    assert ran.status == "completed"
