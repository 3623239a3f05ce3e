"""LOOP-9: an iteration that is reported whole moves the state as its events one by one do."""

from typing import Any

import msgspec
import pytest
from tests.support.decided import ByHand
from tests.support.steps import call, step

from noetl.control.evolve import evolve
from noetl.messages import events as e
from noetl.messages.codec import encode

OK: dict[str, Any] = {"status": "ok", "result": 7, "error": None}
BAD: dict[str, Any] = {"status": "error", "result": None, "error": {"kind": "http"}}


class Told:
    """What a worker tells of a loop's iterations."""

    def __init__(self, hand: ByHand) -> None:
        self._ids = hand.run.ids
        self._token = hand.run.step_run_id.partition(".")[0]

    def began(self, index: int) -> list[e.Event]:
        iteration = f"{self._token}.{index + 1}"
        started = e.IterationStarted(**self._ids, index=index, iteration_id=iteration)
        task = e.TaskStarted(**self._ids, task_run_id=f"{iteration}.1", task="ask", kind="http")
        return [started, task]

    def did(self, index: int, outcome: dict[str, Any] = OK, **more: Any) -> list[e.Event]:
        at = f"{self._token}.{index + 1}.1"
        done = e.TaskDone(**self._ids, task_run_id=at, task="ask", outcome=outcome, **more)
        return [done]

    def ended(self, index: int) -> list[e.Event]:
        iteration = f"{self._token}.{index + 1}"
        return [e.IterationDone(**self._ids, index=index, iteration_id=iteration, result=index)]

    def whole(self, index: int) -> list[e.Event]:
        return [*self.began(index), *self.did(index), *self.ended(index)]


def in_order(told: Told) -> list[e.Event]:
    return [*told.whole(0), *told.whole(1), *told.whole(2)]


def later_ones_first(told: Told) -> list[e.Event]:
    return [*told.whole(2), *told.whole(0), *told.whole(1)]


def one_between(told: Told) -> list[e.Event]:
    """The id of iteration 9, which goes on, begins like that of iteration 0."""
    return [*told.began(9), *told.began(0), *told.did(9), *told.ended(0)]


def an_error_that_was_passed(told: Told) -> list[e.Event]:
    return [*told.began(0), *told.did(0, BAD), *told.ended(0), *told.whole(1)]


def one_that_wrote(told: Told) -> list[e.Event]:
    wrote = told.did(0, set_ctx={"seen": 1})
    return [*told.began(0), *wrote, *told.ended(0), *told.whole(1)]


def one_that_goes_on(told: Told) -> list[e.Event]:
    return [*told.whole(0), *told.began(1), *told.did(1)]


SHAPES = (
    in_order,
    later_ones_first,
    one_between,
    an_error_that_was_passed,
    one_that_wrote,
    one_that_goes_on,
)


def looped(mode: str) -> ByHand:
    loop = {"in": list(range(12)), "iterator": "n", "spec": {"mode": mode, "max_in_flight": 12}}
    return ByHand(step("start", call("ask"), loop=loop), rules=5)


@pytest.mark.rule("LOOP-9", "EVT-5")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_it_is_as_if_its_events_came_one_by_one(shape: Any, mode: str) -> None:
    hand = looped(mode)
    hand.claim()
    hand.report(*shape(Told(hand)))
    alone = looped(mode)
    alone.claim()
    for event in shape(Told(alone)):
        alone.report(event)
    assert encode(hand.execution) == encode(alone.execution)


@pytest.mark.rule("EVT-5")
def test_the_log_comes_to_the_same_state() -> None:
    hand = looped("parallel")
    hand.claim()
    events = hand.report(*later_ones_first(Told(hand)))
    again = looped("parallel")
    again.claim()
    for event in events:
        evolve(again.execution, event, again.plan)
    assert encode(again.execution) == encode(hand.execution)
    assert hand.run.loop is not None
    assert hand.run.loop.low == 3


OTHER: tuple[dict[str, Any], ...] = (
    {"ended": {"index": 1}},
    {"ended": {"parent_id": "x"}},
    {"began": {"index": 1}},
    {"did": {"task_run_id": "1.1.1.1"}},
    {"did": {"do": "jump", "to": "nowhere"}},
    {"did": {"do": "fail"}},
)


@pytest.mark.rule("EVT-5")
@pytest.mark.parametrize("lie", OTHER)
def test_what_no_reader_of_the_log_could_follow_is_not_taken(lie: dict[str, Any]) -> None:
    """It was recorded, and its execution could neither be shown nor ended any more."""
    hand = looped("parallel")
    hand.claim()
    told = Told(hand)
    parts = {"began": told.began(0), "did": told.did(0), "ended": told.ended(0)}
    for name, more in lie.items():
        number = hand.run.step_run_id.partition(".")[0]
        fields = {key: f"{number}.1.1.1" if key == "task_run_id" else more[key] for key in more}
        parts[name][0] = msgspec.structs.replace(parts[name][0], **fields)
    with pytest.raises((KeyError, IndexError, AssertionError)):
        hand.report(*parts["began"], *parts["did"], *parts["ended"])


@pytest.mark.rule("EVT-5")
@pytest.mark.parametrize("more", [{"do": "jump", "to": "nowhere"}, {"do": "fail"}])
def test_nor_of_a_run_that_ends_with_it(more: dict[str, Any]) -> None:
    hand = ByHand(step("start", call("ask"), call("tell")), rules=5)
    hand.claim()
    run = hand.run.ids
    task: dict[str, Any] = {
        "task_run_id": f"{hand.run.step_run_id.partition('.')[0]}.1",
        "task": "ask",
    }
    done = e.TaskDone(**run, **task, outcome=OK, **more)
    with pytest.raises((KeyError, AssertionError)):
        hand.report(e.StepStarted(**run), done, e.StepDone(**run, result=1))
