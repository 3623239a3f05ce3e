"""Who may speak for a part: the one that has its lease, once, and in order (EVT-3)."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.decided import ByHand
from tests.support.steps import call, step

from noetl.messages import events as e
from noetl.messages import requests as r

TWO_TASKS = step("start", call("ask"), call("tell"))


def taken_over() -> tuple[ByHand, r.Report]:
    """A part whose second worker has it; what the first one would still like to say."""
    hand = ByHand(TWO_TASKS)
    hand.claim("w1")
    late = hand.made(hand.done(), part=hand.part)
    hand.lose()
    hand.claim("w2")
    return hand, late


def names(events: list[e.Event]) -> list[str]:
    return [type(event).__name__ for event in events]


@pytest.mark.rule("EVT-3")
def test_nobody_hears_a_worker_whose_part_another_one_has() -> None:
    hand, late = taken_over()
    assert hand.give(late) == []
    assert names(hand.give(replace(late, epoch=2, worker="w2"))) == ["TaskDone"]


@pytest.mark.rule("EVT-3")
def test_nobody_hears_a_worker_whose_lease_has_ended() -> None:
    hand = ByHand(TWO_TASKS)
    hand.claim("w1")
    late = hand.made(hand.done(), part=hand.part)
    hand.lose()
    assert hand.give(late) == []


@pytest.mark.rule("EVT-3", "TASK-9")
def test_a_report_is_taken_once_and_in_order() -> None:
    hand = ByHand(TWO_TASKS)
    hand.claim()
    first = replace(hand.made(hand.done(), part=hand.part), after=0)
    assert hand.give(replace(first, after=1)) == [], "one before it is missing"
    assert names(hand.give(first)) == ["TaskDone"]
    assert hand.give(first) == []
    assert hand.part.taken == 1


@pytest.mark.rule("EVT-3")
def test_a_new_worker_counts_its_reports_from_the_beginning() -> None:
    hand = ByHand(TWO_TASKS)
    hand.claim("w1")
    hand.report(hand.done())
    hand.lose()
    hand.claim("w2")
    assert hand.part.taken == 0
    told = e.TaskDone(
        **hand.run.ids,
        task_run_id=f"{hand.run.step_run_id.partition('.')[0]}.2",
        task="tell",
        outcome={"status": "ok", "result": None, "error": None},
    )
    report = replace(hand.made(told, part=hand.part), after=0)
    assert names(hand.give(report)) == ["TaskDone"]


@pytest.mark.rule("EVT-3")
@pytest.mark.parametrize("epoch", [1, 2])
def test_a_claim_that_comes_late_takes_nothing_back(epoch: int) -> None:
    hand, _ = taken_over()
    ids: dict[str, Any] = {"step_run_id": hand.run.step_run_id, "part": 0}
    assert hand.give(r.PartClaimed(**ids, epoch=epoch, worker="w1")) == []
    assert (hand.part.worker, hand.part.epoch) == ("w2", 2)


@pytest.mark.rule("EVT-3", "WRK-1")
def test_the_end_of_an_old_lease_ends_no_other() -> None:
    hand, _ = taken_over()
    ids: dict[str, Any] = {"step_run_id": hand.run.step_run_id, "part": 0}
    assert hand.give(r.LeaseLost(**ids, epoch=1)) == []
    assert hand.part.worker == "w2"
