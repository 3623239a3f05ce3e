"""The fast lane: what waits for nothing is run in one go, and what is large is not."""

import pytest
from tests.support.decided import ByHand
from tests.support.steps import Tree, noop, otherwise, step, when

from noetl.worker.through import SMALL, run_through

LARGE = f"{{{{ 'x' * {SMALL} }}}}"
PIPELINES: dict[str, tuple[tuple[Tree, ...], bool]] = {
    "nothing is written": ((noop("a"), noop("b")), True),
    "something small is passed on": ((noop("a", otherwise(set_prev="y")), noop("b")), True),
    "a rule gives a large result": ((noop("a", otherwise(set_prev=LARGE)), noop("b")), False),
    "a rule writes much to ctx": ((noop("a", otherwise(set_ctx={"k": LARGE})),), False),
    "it jumps for ever": ((noop("a", otherwise(do="jump", to="a")),), False),
    "no rule matches": ((noop("a", when(False, set_prev=LARGE)),), True),
}


@pytest.mark.parametrize(("tasks", "goes"), PIPELINES.values(), ids=PIPELINES)
def test_what_goes_through(tasks: tuple[Tree, ...], goes: bool) -> None:
    hand = ByHand(step("start", *tasks))
    events = run_through(hand.plan, hand.execution, hand.run, "w1")
    assert (events is not None) is goes


def test_the_last_outcome_moves_no_frame_and_ends_its_run_alike() -> None:
    hand = ByHand(step("start", noop("a", otherwise(set_ctx={"k": 1})), noop("b")))
    events = run_through(hand.plan, hand.execution, hand.run, "w1")
    assert events is not None
    hand.claim()
    told = hand.report(*events)
    assert [type(event) for event in told if event in events] == [type(one) for one in events]
    assert hand.execution.finished
    assert hand.execution.ctx == {"k": 1}
