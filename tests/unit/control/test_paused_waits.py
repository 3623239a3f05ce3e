"""No clock of a wait moves while its execution is paused (WAIT-6)."""

import pytest
from tests.support.decided import ByHand
from tests.support.steps import step
from tests.support.waiting import waits

from noetl.messages import events as e
from noetl.messages import requests as r


@pytest.mark.rule("WAIT-6", "WAIT-3")
def test_a_clock_that_says_so_during_a_pause_ends_no_wait() -> None:
    """It was due when the pause began, and the word of it comes later."""
    hand = ByHand(step("start", waits("rest", seconds=1)))
    hand.claim()
    task_run_id = f"{hand.run.step_run_id.partition('.')[0]}.1"
    ids = {**hand.run.ids, "task_run_id": task_run_id, "task": "rest"}
    arm = {"by": "timer", "seconds": 1.0, "due": hand.at + 1000}
    hand.report(e.StepStarted(**hand.run.ids), e.WaitStarted(**ids, awaits=[arm]))
    due = r.WaitsDue(waits=[(hand.run.step_run_id, task_run_id)])
    hand.give(r.PauseExecution())
    hand.at += 5000
    assert hand.give(due) == []
    hand.give(r.ResumeExecution())
    hand.at += 5000
    assert any(isinstance(event, e.WaitDone) for event in hand.give(due))
