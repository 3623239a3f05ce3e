"""What a worker sends is looked at before it is taken: it may tell only what is its own to tell."""

from typing import Any

import msgspec
import pytest
from tests.support.steps import Tree, call, playbook, step, task
from tests.support.waiting import waits

from noetl.control.execution import Execution, LoopRun, Part, Run
from noetl.messages import events as e
from noetl.messages.codec import encode_events
from noetl.messages.details import MOST_REPORTED
from noetl.pipeline.frame import TaskWait
from noetl.ports.link import Hold, Sent
from noetl.server import inspection
from noetl.server.inspection import Unfit, inspected, look_at
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


NO_TIMES: list[Any] = [
    *(True, "x", [[]], {"started_at": "x"}, {"started_at": 1.5}, {"started_at": True}),
    *({"started_at": 1, "duration_ms": None}, {"started_at": 1, "duration_ms": 2**60}),
]


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
        *(
            (done({"status": "ok", "meta": meta}), "does not say when it was called")
            for meta in NO_TIMES
        ),
    ],
)
def test_what_is_not_its_own_is_refused(event: e.Event, says: str) -> None:
    with pytest.raises(Unfit, match=says):
        look(event)


@pytest.mark.rule("EVT-3")
def test_a_clock_that_is_set_back_during_a_call_refuses_nothing() -> None:
    look(done({"status": "ok", "meta": {"started_at": 9, "duration_ms": -86_400_000}}))


LOOP: dict[str, Any] = {"total": 9, "items": [], "mode": "parallel", "exec": "distributed"}


def begun(number: int, **more: Any) -> e.IterationStarted:
    told = {"index": number, "iteration_id": f"4.{number + 1}", **more}
    return e.IterationStarted(**RUN, **told)


def did(task_run_id: str) -> e.TaskDone:
    return msgspec.structs.replace(done({"status": "ok"}), task_run_id=task_run_id)


@pytest.mark.rule("EVT-0", "EVT-3", "WRK-1")
@pytest.mark.parametrize(
    ("event", "says"),
    [
        (begun(3), None),
        (begun(5), None),
        (did("4.4.1"), None),
        (did("4.6.1.2r2.1"), None),
        (begun(0, parent_id="4.4.1", iteration_id="4.4.1.1"), None),
        (begun(2), "does not run"),
        (begun(6), "does not run"),
        (did("4.7.1"), "does not run"),
        (did("4.x.1"), "does not run"),
        (did(f"4.{10**30}.1"), "does not run"),
        (begun(0, parent_id="4.1.1", iteration_id="4.1.1.1"), "does not run"),
        (begun(3, iteration_id="4.5"), "not the name of"),
        (did("5.4.1"), "nothing of this run"),
        (did("4"), "nothing of this run"),
        (did(""), "nothing of this run"),
    ],
)
def test_a_part_of_a_loop_tells_of_its_own_iterations(event: e.Event, says: str | None) -> None:
    """Those of other parts are other workers' to run."""
    run = Run(step_run_id="4.0", step="s", args={}, ctx={}, loop=LoopRun(**LOOP))
    part = Part(part=0, first=3, last=6)
    if says is None:
        look_at(event, run, part)
    else:
        with pytest.raises(Unfit, match=says):
            look_at(event, run, part)


@pytest.mark.rule("EVT-3")
def test_a_report_has_an_end() -> None:
    """It is taken in one go: 200,000 events stopped a server for seconds."""
    plain = done({"status": "ok", "result": [{"name": 1}] * 12_000})
    assert look(plain) == [plain]
    with pytest.raises(Unfit, match="more than 10,000 events"):
        look(*[done({"status": "ok"})] * 10_001)


@pytest.mark.rule("EVT-4")
@pytest.mark.parametrize("levels", [250, 900])
def test_a_value_that_nobody_can_walk_through_is_refused(levels: int) -> None:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    with pytest.raises(Unfit, match="nested too deeply"):
        look(done({"status": "ok", "result": value}))


TASK: dict[str, Any] = {**RUN, "task": "ask", "task_run_id": "4.1"}
ASK = {"title": "Pay?", "roles": ["admin"], "form": {"n": "integer"}}
OPEN = {"title": "Pay?", "roles": ["{{ 1 }}", "admin"], "form": "{{ workload.form }}"}
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
        ({"signal": "{{ 1 }}"}, {"by": "signal", "name": "1"}, None),
        ({"signal": "{{ 1 }}"}, {"by": "signal"}, "needs a name"),
        ({"signal": "{{ 1 }}"}, {"by": "signal", "name": None}, "nothing can await"),
        ({"signal": "{{ 1 }}"}, {"by": "signal", "name": "1", "seconds": 1.0}, "name, seconds"),
        ({"signal": "{{ 1 }}"}, {"by": "signal", "name": "1", "due": None}, "nothing can await"),
        ({"seconds": "{{ 1 }}"}, {"by": "timer"}, "one of seconds and due"),
        ({"seconds": "{{ 1 }}"}, {"by": "timer", "seconds": 1.0, "due": 5}, "one of seconds"),
        ({"until": "{{ 1 }}"}, {"by": "timer", "due": 2**70}, "no calendar has"),
        ({"until": "{{ 1 }}"}, {"by": "timer", "due": -(2**62)}, "no calendar has"),
        ({"approval": "{{ 1 }}"}, {"by": "approval"}, "needs a title"),
        ({"approval": "{{ 1 }}"}, {"by": "approval", "title": ""}, "needs a title"),
        ({"approval": OPEN}, {**ASKED, "roles": ["1", "admin"]}, None),
        ({"approval": OPEN}, {**ASKED, "roles": []}, "another `roles`"),
        ({"approval": OPEN}, {**ASKED, "roles": ["1", "approver"]}, "another `roles`"),
        ({"approval": OPEN}, {**ASKED, "roles": ["1", "admin", "approver"]}, "another `roles`"),
        ({"approval": {**ASK, "roles": "{{ 1 }}"}}, {**ASKED, "roles": []}, "another `roles`"),
        ({"approval": OPEN}, {**ASKED, "form": {"n": {}}}, "not written as forms are"),
        ({"approval": OPEN}, {**ASKED, "form": {"n": {"type": "any"}}}, "has type 'any'"),
        ({"approval": OPEN}, {**ASKED, "form": {"n": {"type": "string", "choices": 5}}}, "'n'"),
        ({"approval": OPEN}, {**ASKED, "form": {"by": {"type": "string"}}}, "field 'by'"),
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


DETAILS = {
    "long numbers": [int("9" * 4000)] * 60,
    "values": [0] * MOST_REPORTED,
}


@pytest.mark.rule("EVT-3")
@pytest.mark.parametrize("what", DETAILS)
def test_a_report_that_takes_long_to_read_is_refused_unread(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1,500 numbers of 4,000 digits stopped a server for eight seconds, whichever way they came."""

    def read(text: bytes) -> Any:
        raise AssertionError(f"{len(text)} bytes were read")

    monkeypatch.setattr(inspection, "decode_events", read)
    with pytest.raises(Unfit, match="the JSON has more than"):
        look(done({"status": "ok", "result": DETAILS[what]}))


def test_a_report_of_long_texts_is_taken() -> None:
    told = [done({"status": "ok", "result": f"{n}" + "9,[" * 100_000}) for n in range(5)]
    assert look(*told) == told
