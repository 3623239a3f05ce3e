"""What a command carries of a loop: the elements of its own part, and no others (LOOP-2)."""

from typing import Any

import pytest
from tests.support.decided import ByHand
from tests.support.steps import call, loop, noop, step

from noetl.control.dispatch import command, open_parts
from noetl.messages import events as e
from noetl.messages.codec import encode


@pytest.mark.rule("LOOP-2", "LOOP-9")
def test_a_part_of_a_distributed_loop_carries_its_slice() -> None:
    rows = [{"id": n, "text": "x" * 40} for n in range(1000)]
    looped = loop(rows, mode="parallel", exec="distributed", flight=100)
    hand = ByHand(step("start", call("ask"), loop=looped))
    shares = [
        command(hand.plan, hand.execution, run, part, 1, at=hand.at).iterations
        for run, part in open_parts(hand.execution)
    ]
    assert len(shares) == 4
    for share in shares:
        assert share is not None
        assert share.items == rows[share.first : share.last]
        assert share.items[0] == rows[share.offset]
        assert len(encode(share)) < 3000


@pytest.mark.rule("LOOP-2", "TASK-9")
def test_a_local_loop_that_is_taken_up_carries_what_is_left() -> None:
    hand = ByHand(step("start", call("ask"), loop=loop(list(range(9)), exec="local")))
    assert hand.run.loop is not None
    assert hand.command().iterations.items == list(range(9))  # type: ignore[union-attr]
    hand.run.loop.low = 6
    share = hand.command().iterations
    assert share is not None
    assert (share.items, share.offset, share.total) == ([6, 7, 8], 6, 9)


@pytest.mark.rule("LOOP-2")
def test_iterations_that_touch_nothing_are_not_spread() -> None:
    looped = loop(list(range(1000)), mode="parallel", exec="distributed", flight=100)
    hand = ByHand(step("start", noop("a"), loop=looped))
    parts = [(part.first, part.last) for _, part in open_parts(hand.execution)]
    assert parts == [(0, 100)]


@pytest.mark.rule("LOOP-1", "LOOP-2")
def test_with_each_that_ends_one_more_is_handed_out() -> None:
    looped = loop(list(range(6)), mode="parallel", exec="distributed", flight=2)
    hand = ByHand(step("start", call("ask"), loop=looped))

    def handed_out() -> list[int]:
        parts = [part for _, part in open_parts(hand.execution)]
        return [index for part in parts for index in range(part.first, part.last)]

    assert handed_out() == [0, 1]
    hand.claim()
    ids: dict[str, Any] = {**hand.run.ids, "index": 0, "iteration_id": "4.1", "part": 0}
    hand.report(e.IterationStarted(**ids), e.IterationDone(**ids, result=1))
    assert handed_out() == [1, 2]
