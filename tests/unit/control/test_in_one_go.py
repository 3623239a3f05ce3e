"""EVT-5: events that are taken in one go move the state as they do one by one."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.decided import ByHand
from tests.support.steps import arc, call, noop, step

from noetl.control.evolve import evolve
from noetl.messages import events as e
from noetl.messages.codec import encode
from noetl.worker.through import run_through

OK: dict[str, Any] = {"status": "ok", "result": 7, "error": None}
BAD: dict[str, Any] = {"status": "error", "result": None, "error": {"kind": "http"}}


def chain(guard: str | None = None, **args: Any) -> ByHand:
    """A step, and one behind its only arc."""
    arcs = [arc("there", guard, **args)]
    return ByHand(step("start", call("ask"), arcs=arcs), step("there", call("last")), rules=5)


def joined() -> ByHand:
    """Two arcs that fire, and a step in which their tokens meet."""
    arcs = [arc("left"), arc("right")]
    meets = [arc("both")]
    return ByHand(
        step("start", call("ask"), arcs=arcs, mode="inclusive"),
        step("left", noop("a"), arcs=meets),
        step("right", noop("b"), arcs=meets),
        step("both", call("last"), join={"mode": "all", "from": ["left", "right"]}),
        rules=5,
    )


class Told:
    """What a worker tells of a run with one task."""

    def __init__(self, hand: ByHand) -> None:
        self._ids = hand.run.ids
        self._task = f"{hand.run.step_run_id.partition('.')[0]}.1"

    def whole(self, outcome: dict[str, Any] = OK, **more: Any) -> list[e.Event]:
        task = {**self._ids, "task_run_id": self._task, "task": "ask"}
        return [
            e.StepStarted(**self._ids),
            e.TaskStarted(**task, kind="http"),
            e.TaskDone(**task, outcome=outcome, **more),
            e.StepDone(**self._ids, result=7),
        ]


PLAYBOOKS = {
    "an arc": chain,
    "an arc with a guard": lambda: chain("event.result == 7"),
    "an arc that does not fire": lambda: chain("event.result == 8"),
    "an arc with args": lambda: chain(n="{{ event.result + 1 }}"),
    "two arcs": joined,
}
REPORTS: dict[str, dict[str, Any]] = {
    "ended well": {},
    "let an error pass": {"outcome": BAD},
    "wrote to ctx": {"set_ctx": {"seen": 1}},
}


@pytest.mark.rule("EVT-5")
@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
@pytest.mark.parametrize("made", PLAYBOOKS.values(), ids=PLAYBOOKS)
def test_a_run_and_what_follows_it(made: Any, report: dict[str, Any]) -> None:
    hand, again = made(), made()
    made_by = hand.made(*Told(hand).whole(**report), part=hand.part)
    for event in hand.give(replace(made_by, epoch=1, worker="w1")):
        evolve(again.execution, event, again.plan)
    assert encode(again.execution) == encode(hand.execution)


@pytest.mark.rule("EVT-5")
def test_a_run_whose_start_was_told_before() -> None:
    hand, again = chain(), chain()
    hand.claim()
    again.claim()
    first, *rest = Told(hand).whole()
    for event in [*hand.report(first), *hand.report(*rest)]:
        evolve(again.execution, event, again.plan)
    assert encode(again.execution) == encode(hand.execution)


@pytest.mark.rule("EVT-5", "SCOPE-3")
def test_tasks_that_only_pass_on_come_to_what_the_pipeline_comes_to() -> None:
    hand = ByHand(step("start", noop("a"), noop("b")), rules=5)
    found = []
    for plan in (hand.plan, replace(hand.plan, idle=frozenset())):
        events = run_through(plan, hand.execution, hand.run, "w1")
        assert events is not None
        for event in events:
            if isinstance(event, e.TaskDone):
                event.outcome["meta"]["started_at"] = 0
        found.append(encode(events))
    assert hand.plan.idle == {"start"}
    assert found[0] == found[1]
