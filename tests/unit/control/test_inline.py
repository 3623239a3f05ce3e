"""Which runs need no worker, and which may start before the commit of their order?"""

import pytest
from tests.support.decided import ByHand
from tests.support.steps import Tree, call, loop, noop, step, task

from noetl.control.dispatch import may_run_ahead, runs_inline
from noetl.messages import requests as r

STEPS: dict[str, tuple[Tree, bool, bool]] = {
    "nothing but noop": (step("start", noop("a"), noop("b")), True, True),
    "a call": (step("start", noop("a"), call("b")), False, False),
    "a call that touches nothing": (step("start", task("a", "transform", value=1)), True, False),
    "a wait": (step("start", task("a", "wait", seconds=1)), True, False),
    "a loop of noop": (step("start", noop("a"), loop=loop([1, 2])), True, False),
}


@pytest.mark.parametrize(("told", "ahead", "inline"), STEPS.values(), ids=STEPS)
def test_what_touches_nothing(told: Tree, ahead: bool, inline: bool) -> None:
    hand = ByHand(told)
    assert may_run_ahead(hand.plan.steps["start"]) is ahead
    assert runs_inline(hand.plan, hand.execution, hand.run) is inline


def test_not_when_it_has_started_or_is_stopped() -> None:
    hand = ByHand(STEPS["nothing but noop"][0])
    hand.run.started = True
    assert not runs_inline(hand.plan, hand.execution, hand.run)
    hand.run.started = False
    hand.give(r.CancelExecution())
    assert not runs_inline(hand.plan, hand.execution, hand.run)
