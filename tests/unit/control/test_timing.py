"""TASK-10: the time of a step run counts from its first claim, whoever has it since."""

from typing import Any

import pytest
from tests.support.decided import ByHand
from tests.support.steps import arc, call, loop, noop, step

from noetl.control.timing import step_deadline
from noetl.messages import events as e
from noetl.messages import requests as r

TIMED = step("start", call("ask"), call("tell"), timeout=20)


@pytest.mark.rule("TASK-10")
def test_the_time_of_a_run_begins_with_its_first_claim() -> None:
    hand = ByHand(TIMED, at=1_000)
    hand.at = 50_000
    assert step_deadline(hand.plan, hand.run) is None
    assert hand.command().left == 20
    hand.claim()
    assert step_deadline(hand.plan, hand.run) == 70_000


@pytest.mark.rule("TASK-10", "WRK-1")
def test_it_goes_on_when_another_worker_takes_over() -> None:
    hand = ByHand(TIMED, at=0)
    hand.claim("w1")
    hand.at = 12_500
    hand.lose(counted=False)
    hand.claim("w2")
    assert step_deadline(hand.plan, hand.run) == 20_000
    assert hand.command().left == 7.5
    hand.at = 30_000
    assert hand.command().left == 0


@pytest.mark.rule("TASK-10", "TASK-8")
@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("looped", [None, "local", "distributed"])
def test_whoever_has_the_run_its_time_ends_it(looped: str | None, held: bool) -> None:
    more: dict[str, Any] = (
        {} if looped is None else {"loop": loop([1, 2], mode="parallel", exec=looped)}
    )
    late = arc("late", "event.error.kind == 'timeout'")
    timed = step("start", call("ask"), timeout=20, arcs=[late], **more)
    hand = ByHand(timed, step("late", noop("n")))
    hand.claim()
    if not held:
        hand.lose(returned=True)
    failed = hand.give(r.StepTimeIsUp(step_run_id=hand.run.step_run_id, seconds=20))[0]
    assert isinstance(failed, e.StepFailed)
    assert failed.error["message"] == "step 'start' took longer than its timeout of 20 s"
    assert hand.run.step == "late"
