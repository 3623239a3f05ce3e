"""What a worker sends is looked at before it is taken: it may tell only what is its own to tell."""

from typing import Any

import msgspec
import pytest
from tests.support.steps import Tree, call, playbook, step, task
from tests.support.waiting import waits

from noetl.control.execution import Execution, Part, Run
from noetl.messages import events as e
from noetl.messages.codec import encode_events
from noetl.pipeline.frame import TaskWait
from noetl.ports.link import Hold, Sent
from noetl.server.inspection import Unfit, inspected
from noetl.server.library import plan_from
from noetl.server.wait_inspection import misfit_of_waits

RUN: dict[str, Any] = {"step": "s", "step_run_id": "4.0"}

PLAN = plan_from(playbook(step("s", task("t", "noop"))))


def done(outcome: dict[str, Any], **more: Any) -> e.TaskDone:
    return e.TaskDone(**RUN, task="t", task_run_id="4.1", outcome=outcome, **more)


def look(*events: e.Event) -> list[e.Event]:
    hold = Hold(execution_id="x1", step_run_id="4.0", part=0, epoch=1)
    sent = Sent(hold=hold, after=0, events=msgspec.Raw(encode_events(list(events))))
    run = Run(step_run_id="4.0", step="s", args={}, ctx={})
    return inspected(sent, Execution(execution_id="x1"), run, Part(part=0), PLAN)


def test_what_is_its_own_is_taken() -> None:
    told = [e.StepStarted(**RUN), e.StepDone(**RUN, result=1)]
    assert look(*told) == told


@pytest.mark.rule("EVT-1", "EVT-3")
@pytest.mark.parametrize(
    ("event", "says"),
    [
        (e.TokenClaimed(**RUN, worker="w", epoch=1), "not a worker's to report"),
        (e.StepDone(step="s", step_run_id="9.0"), "another run"),
        (e.StepFailed(**RUN, error={}, source="server"), "only the server may send"),
        (e.StepDone(**RUN, source="server"), "only the server may send"),
        (e.LoopStarted(**RUN, total=1, items=[1], mode="parallel"), "begun by the server"),
        (done({}), "no outcome"),
        (done({"status": "weird"}), "no outcome"),
        (done({"status": ["ok"]}), "no outcome"),
        (done({"status": "error", "error": "a text"}), "no outcome"),
        (done({"status": "error"}), "no outcome"),
        (done({"status": "ok", "result": 1}, do="jump"), "names no target"),
    ],
)
def test_what_is_not_its_own_is_refused(event: e.Event, says: str) -> None:
    with pytest.raises(Unfit, match=says):
        look(event)


TASK: dict[str, Any] = {**RUN, "task": "ask", "task_run_id": "4.1"}
ASK = {"title": "Pay?", "roles": ["admin"], "form": {"n": "integer"}}
ASKED = {"by": "approval", "title": "Pay?", "roles": ["admin"], "form": {"n": {"type": "integer"}}}


def lie(task_: Tree, event: e.Event, wait: TaskWait | None = None) -> str | None:
    """What is said to an event of the step that has this task and another one."""
    plan = plan_from(playbook(step("s", task_, call("other"))))
    run = Run(step_run_id="4.0", step="s", args={}, ctx={}, waits={"4.1": wait} if wait else {})
    return misfit_of_waits([event], run, Part(part=0), plan)


@pytest.mark.rule("WAIT-2", "EVT-1")
@pytest.mark.parametrize(
    ("inputs", "arm", "says"),
    [
        ({"approval": ASK}, ASKED, None),
        ({"approval": ASK}, {**ASKED, "roles": ["worker"]}, "another `roles`"),
        ({"approval": ASK}, {"by": "approval", "title": "Pay?"}, "another `roles`"),
        ({"approval": ASK}, {**ASKED, "title": "Fine?"}, "another `title`"),
        ({"approval": ASK}, {**ASKED, "form": {}}, "another `form`"),
        ({"approval": ASK}, {"by": "timer", "seconds": 0.0}, "another `by`"),
        ({"approval": {**ASK, "title": "{{ 1 }}"}}, {**ASKED, "title": "1"}, None),
        ({"approval": {**ASK, "title": "{{ 1 }}"}}, {**ASKED, "roles": []}, "another `roles`"),
        ({"approval": "{{ workload.ask }}"}, ASKED, None),
        ({"approval": {**ASK, "roles": "{{ workload.who }}"}}, ASKED, None),
        ({"approval": {**ASK, "roles": "{{ workload.who }}"}}, {**ASKED, "form": {}}, "`form`"),
        ({"approval": {**ASK, "form": "{{ workload.form }}"}}, ASKED, None),
        ({"approval": ASK}, {**ASKED, "title": "P***?"}, None),
        ({"approval": ASK}, {**ASKED, "title": "***Pay?***"}, None),
        ({"approval": ASK}, {**ASKED, "title": "Fine? ***"}, "another `title`"),
        ({"approval": ASK}, {**ASKED, "title": "***y***y?"}, "another `title`"),
        ({"approval": ASK}, {**ASKED, "roles": ["***"]}, None),
        ({"approval": ASK}, {**ASKED, "roles": ["***", "approver"]}, "another `roles`"),
        ({"approval": ASK}, {**ASKED, "form": {"n": {"type": "***"}}}, None),
        ({"approval": ASK}, {**ASKED, "form": {"x": {"type": "***"}}}, "another `form`"),
        ({"signal": "go"}, {"by": "signal", "name": "go"}, None),
        ({"signal": "go"}, {"by": "signal", "name": "come"}, "another `name`"),
        ({"signal": "go", "when": "{{ false }}"}, {"by": "signal", "name": "go"}, "`guarded`"),
        ({"seconds": 60}, {"by": "timer", "seconds": 60.0}, None),
        ({"seconds": 60}, {"by": "timer", "seconds": 0.0}, "another `seconds`"),
        ({"seconds": "{{ 1 }}"}, {"by": "timer", "seconds": 1e300}, "longer than anything may"),
        ({"seconds": "{{ 1 }}"}, {"by": "timer", "due": 5}, None),
        ({"until": "2030-01-01T00:00:00Z"}, {"by": "timer", "due": 5}, "another `due`"),
        ({"any": {"a": {"seconds": 1}}}, {"by": "timer", "seconds": 1.0, "label": "a"}, None),
        ({"any": {"a": {"seconds": 1}}}, {"by": "timer", "seconds": 1.0}, "awaits"),
        ({"signal": "go"}, {"by": "nobody"}, "nothing can await"),
        ({"signal": "go"}, {"name": "go"}, "nothing can await"),
        ({"signal": "go"}, {"by": "signal", "name": "go", "due": "soon"}, "nothing can await"),
    ],
)
def test_a_wait_is_that_of_the_plan(inputs: Tree, arm: Tree, says: str | None) -> None:
    found = lie(waits("ask", **inputs), e.WaitStarted(**TASK, awaits=[arm]))
    assert (found is None) if says is None else says in str(found)


@pytest.mark.rule("WAIT-2", "EVT-1")
@pytest.mark.parametrize(
    ("event", "says"),
    [
        (e.WaitStarted(**{**TASK, "task": "other"}, awaits=[ASKED]), "no task that waits"),
        (e.WaitStarted(**{**TASK, "task_run_id": "5.1"}, awaits=[ASKED]), "no task run of"),
        (e.WaitStarted(**{**TASK, "task_run_id": "x"}, awaits=[ASKED]), "no task run of"),
        (e.WaitStarted(**TASK, awaits=[ASKED], timeout=1e30), "longer than anything"),
        (e.WaitStarted(**TASK, awaits=[ASKED, ASKED]), "awaits"),
        (e.WaitStarted(**TASK, awaits=[ASKED], lent="nothing"), "no task that waits"),
        (e.TaskSuspended(**TASK, reason="wait"), "does not wait"),
        (e.TaskDone(**TASK, outcome={"status": "ok", "result": {}}), "nobody gave"),
        (e.TaskDone(**TASK, outcome={"status": "error", "error": {}}), None),
        (e.TaskDone(**{**TASK, "task": "other"}, outcome={"status": "ok"}), None),
    ],
)
def test_of_a_wait_only_its_own_is_told(event: e.Event, says: str | None) -> None:
    found = lie(waits("ask", approval=ASK), event)
    assert (found is None) if says is None else says in str(found)


@pytest.mark.rule("WAIT-5", "EVT-1")
def test_no_worker_answers_in_place_of_a_person() -> None:
    given = {"approved": False, "by": "ann", "at": "now", "reason": "no"}
    done = e.WaitDone(**TASK, by="approval", result=given)
    wait = TaskWait(**TASK, awaits=[ASKED], seq=1, since=1, done=done)
    for result, says in (
        (given, None),
        ({**given, "approved": True}, "another answer"),
        ({**given, "by": "bob"}, "another answer"),
    ):
        told = e.TaskDone(**TASK, outcome={"status": "ok", "result": result})
        found = lie(waits("ask", approval=ASK), told, wait)
        assert (found is None) if says is None else says in str(found)
    late = msgspec.structs.replace(done, by="timeout", error={"kind": "timeout"}, result=None)
    told = e.TaskDone(**TASK, outcome={"status": "ok", "result": given})
    found = lie(waits("ask", approval=ASK), told, msgspec.structs.replace(wait, done=late))
    assert "nobody gave" in str(found)


@pytest.mark.rule("WAIT-2")
def test_a_playbook_that_never_waits_has_no_waits() -> None:
    with pytest.raises(Unfit, match="no task that waits"):
        look(e.WaitStarted(**TASK, awaits=[ASKED]))
