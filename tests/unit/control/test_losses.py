"""Which ends of leases count, and what is said of a part that workers die of (T11, T21)."""

import pytest
from tests.support.decided import ByHand
from tests.support.steps import call, step

from noetl.messages import events as e

TWO_TASKS = step("start", call("ask"), call("tell"))


def lost_by(hand: ByHand, *workers: str) -> list[e.Event]:
    events: list[e.Event] = []
    for worker in workers:
        hand.claim(worker)
        events = hand.lose()
    return events


@pytest.mark.rule("WRK-1", "OUT-4")
def test_the_third_loss_without_progress_names_the_workers() -> None:
    hand = ByHand(TWO_TASKS)
    lost_by(hand, "w1", "w2")
    assert hand.command().losses == 2
    failed = lost_by(hand, "w3")[1]
    assert isinstance(failed, e.StepFailed)
    assert failed.error["kind"] == "worker_lost"
    assert failed.error["workers"] == ["w1", "w2", "w3"]
    assert failed.error["message"] == (
        "3 workers were lost while they ran this step, "
        "and none of them recorded anything in between: w1, w2, w3"
    )


@pytest.mark.rule("WRK-1", "TASK-9")
def test_progress_forgives_losses() -> None:
    hand = ByHand(TWO_TASKS)
    lost_by(hand, "w1", "w2")
    hand.claim("w3")
    hand.report(hand.done())
    assert hand.command().losses == 0
    assert [type(event) for event in hand.lose()] == [e.LeaseExpired]
    lost_by(hand, "w4")
    assert hand.part.workers == ["w3", "w4"]
    assert not hand.execution.finished


@pytest.mark.rule("WRK-1", "WRK-2")
@pytest.mark.parametrize("how", [{"returned": True}, {"counted": False}])
def test_what_is_nobodys_loss_is_recorded_and_not_counted(how: dict[str, bool]) -> None:
    hand = ByHand(TWO_TASKS)
    for _ in range(5):
        hand.claim()
        (expired,) = hand.lose(**how)
        assert isinstance(expired, e.LeaseExpired)
        assert (expired.returned, expired.uncounted) == (
            "returned" in how,
            "counted" in how,
        )
    assert (hand.part.lost, hand.part.workers) == (0, [])


@pytest.mark.rule("EVT-5")
def test_an_execution_of_the_first_rules_counts_as_it_did() -> None:
    hand = ByHand(TWO_TASKS, rules=1)
    lost_by(hand, "w1", "w2")
    hand.claim("w3")
    hand.report(hand.done())
    failed = hand.lose()[1]
    assert isinstance(failed, e.StepFailed)
    assert failed.error == {
        "kind": "worker_lost",
        "message": "3 workers were lost while they ran this step",
        "retryable": False,
    }
