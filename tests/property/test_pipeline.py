"""Pipelines against chance: the worker's frame and the server's follow one another exactly."""

import copy
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.plans import planned
from tests.support.searching import examples
from tests.support.simulation import outcome_by
from tests.support.steps import Tree, call, noop, otherwise, step, when

from noetl.messages import events as e
from noetl.messages.codec import decode_events, encode_events
from noetl.pipeline.advance import advance
from noetl.pipeline.asks import Breathe, CallTool, Pause
from noetl.pipeline.backoff import LONGEST, pause
from noetl.pipeline.drive import End, Surroundings, run_pipeline
from noetl.pipeline.frame import Frame
from noetl.playbook.model import Backoff
from noetl.playbook.plan import Plan

LABELS = ["t0", "t1", "t2"]


@st.composite
def pipelines(draw: st.DrawFn) -> list[Tree]:
    """Three tasks whose rules say anything; jumps end because attempts and turns are counted."""
    tasks = []
    for label in LABELS:
        rules = []
        for _ in range(draw(st.integers(0, 2))):
            rules.append(when(draw(st.sampled_from(GUARDS)), **draw(orders())))
        if draw(st.booleans()):
            rules.append(otherwise(**draw(orders())))
        tasks.append(draw(st.sampled_from([call, call, noop]))(label, *rules))
    return tasks


GUARDS = [
    "outcome.status == 'error'",
    "outcome.result == 1",
    "_attempt < 2",
    "iter.get('n', 0) < 3",
    "_prev is none",
    "ctx.k == 2",
]
SETS: list[Tree] = [
    {},
    {},
    {"set_ctx": {"k": "{{ outcome.result }}"}},
    {"set_iter": {"n": "{{ iter.n | default(0) + 1 }}"}},
    {"set_prev": "{{ [_task, outcome.status] }}"},
    {"set_prev": None, "set_ctx": {"k": 2}},
]


@st.composite
def orders(draw: st.DrawFn) -> Tree:
    do = draw(st.sampled_from(["continue", "retry", "jump", "break", "fail"]))
    more: dict[str, Tree] = {
        "retry": {"attempts": draw(st.integers(1, 3)), "delay": draw(st.integers(0, 9))},
        "jump": {"to": draw(st.sampled_from(LABELS))},
    }
    return {"do": do, **more.get(do, {}), **draw(st.sampled_from(SETS))}


class Drive:
    """A pipeline driven by answers of chance, from a frame on."""

    def __init__(self, plan: Plan, frame: Frame, ctx: dict[str, Any], random: Random) -> None:
        self.events: list[e.Event] = []
        self.scope: dict[str, Any] = {
            "workload": {},
            "ctx": ctx,
            "args": {},
            "iter": frame.iter,
            "execution_id": "x1",
        }
        around = Surroundings(
            plan=plan,
            step="start",
            step_run_id="4.0",
            worker="w",
            trace_id="x1",
            now=lambda: 1.0,
            chance=lambda: 0.5,
            fit=lambda values: values,
        )
        pipeline = plan.steps["start"].pipeline
        self.driven = run_pipeline(pipeline, frame, self.scope, "4", around, self.events)
        self.random = random

    def end(self) -> End:
        answer: Any = None
        while True:
            try:
                ask = self.driven.send(answer)
            except StopIteration as stop:
                end: End = stop.value
                return end
            assert isinstance(ask, CallTool | Pause | Breathe)
            answer = outcome_by(self.random) if isinstance(ask, CallTool) else None


def plan_of(tasks: list[Tree]) -> Plan:
    limits = {"spec": {"policy": {"limits": {"max_task_runs": 25}}}}
    return planned(step("start", *tasks), executor=limits)


@pytest.mark.rule("TASK-9", "TASK-2", "TASK-4", "EVT-5")
@examples(300)
@given(tasks=pipelines(), seed=st.integers(0, 2**32), data=st.data())
def test_a_frame_that_follows_the_log_stands_where_the_worker_stood(
    tasks: list[Tree], seed: int, data: st.DataObject
) -> None:
    """Cut the log after any outcome: going on from there comes to the same outcomes and end."""
    plan = plan_of(tasks)
    pipeline = plan.steps["start"].pipeline
    whole = Drive(plan, Frame(), {}, Random(seed))
    end = whole.end()
    outcomes = [event for event in whole.events if isinstance(event, e.TaskDone)]
    cut = data.draw(st.integers(0, len(outcomes)))
    frame, ctx = Frame(), dict[str, Any]()
    for event in decode_events(encode_events(outcomes[:cut])):
        assert isinstance(event, e.TaskDone)
        advance(frame, event, pipeline)
        ctx = {**ctx, **event.set_ctx}
    random = Random(seed)
    spent = sum(1 for event in outcomes[:cut] if pipeline.tasks[pipeline.labels[event.task]].effect)
    for _ in range(spent):
        outcome_by(random)
    rest = Drive(plan, copy.deepcopy(frame), ctx, random)
    assert rest.end() == end
    again = [event for event in rest.events if isinstance(event, e.TaskDone)]
    assert again == outcomes[cut:]


@pytest.mark.rule("TASK-3", "TASK-4", "TASK-9")
@examples(300)
@given(tasks=pipelines(), seed=st.integers(0, 2**32))
def test_what_is_true_of_every_pipeline(tasks: list[Tree], seed: int) -> None:
    plan = plan_of(tasks)
    whole = Drive(plan, Frame(), {}, Random(seed))
    end = whole.end()
    started = [event for event in whole.events if isinstance(event, e.TaskStarted)]
    outcomes = [event for event in whole.events if isinstance(event, e.TaskDone)]
    assert [(one.task_run_id, one.attempt) for one in started] == [
        (one.task_run_id, one.attempt) for one in outcomes
    ], "one outcome for each start, in order"
    assert len({(one.task_run_id, one.attempt) for one in outcomes}) == len(outcomes)
    for before, after in pairwise(outcomes):
        check_pair(before, after, plan)
    last = outcomes[-1]
    assert (end.error is not None) == (last.do == "fail" or over(end))
    ids = [one.task_run_id for one in outcomes]
    assert ids == sorted(ids, key=lambda text: int(text.partition(".")[2]))


def over(end: End) -> bool:
    return end.error is not None and end.error["kind"] == "limit"


def check_pair(before: e.TaskDone, after: e.TaskDone, plan: Plan) -> None:
    """Which outcome may follow which."""
    labels = plan.steps["start"].pipeline.labels
    if before.do == "retry":
        assert after.task_run_id == before.task_run_id
        assert after.attempt == before.attempt + 1
        return
    assert after.attempt == 1
    assert after.task_run_id != before.task_run_id
    expected = before.to if before.do == "jump" else LABELS[labels[before.task] + 1]
    assert before.do in ("jump", "continue")
    assert after.task == expected


@pytest.mark.rule("TASK-3")
@examples(300)
@given(
    backoff=st.sampled_from(["none", "linear", "exponential"]),
    delay=st.floats(0, 1e6),
    attempt=st.integers(1, 10_000),
    longest=st.none() | st.floats(0, 1e5),
    jitter=st.floats(0, 1),
    chance=st.floats(0, 1),
)
def test_a_pause_is_a_bounded_number(
    backoff: Backoff,
    delay: float,
    attempt: int,
    longest: float | None,
    jitter: float,
    chance: float,
) -> None:
    def wait(number: int, how: float) -> float:
        return pause(backoff, delay, attempt=number, max_delay=longest, jitter=jitter, chance=how)

    assert 0 <= wait(attempt, chance) <= (LONGEST if longest is None else longest)
    assert wait(attempt, 0.5) <= wait(attempt + 1, 0.5), "it never grows shorter"
    assert wait(attempt, 0) <= wait(attempt, chance) <= wait(attempt, 1)
