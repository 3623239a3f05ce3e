"""WRK: a report that no server can decide is not decided for ever."""

from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_wrk_bound import Scene, report, staged, task_run_of
from tests.support.cluster import until

from noetl.messages import events as e


@pytest.mark.rule("WRK-1")
@pytest.mark.parametrize("lie", ["a jump to nowhere", "a task that is not begun"])
def test_a_report_that_cannot_be_decided_costs_its_worker_the_part(
    tmp_path: Path, lie: str
) -> None:
    """Else it is decided again for ever, and its execution loaded for each time."""

    async def act(scene: Scene) -> None:
        hold, execution_id = scene.evil.hold, scene.evil.hold.execution_id
        ids: dict[str, Any] = {"step": "mine", "step_run_id": hold.step_run_id}
        outcome: dict[str, Any] = {"status": "ok", "result": 1, "error": None}
        run = task_run_of(hold)
        run = f"{run}.7.7" if lie == "a task that is not begun" else run
        jump = e.TaskDone(
            **ids, task_run_id=run, task="fetch", outcome=outcome, do="jump", to="nowhere"
        )
        said = []
        while "refused" not in said:
            answer = await scene.evil.say(reports=[report(hold, jump)], holds=[hold])
            said += [one.state for one in answer.verdicts]
            if said[-1] == "later":
                await until(lambda: scene.server.server.find(execution_id))
        assert said == ["later", "later", "refused"]
        other = await scene.evil.take()
        assert (other.execution_id, other.epoch > hold.epoch) == (execution_id, True)
        good = report(other, e.StepStarted(**ids), e.StepDone(**ids, result="good"))
        (verdict,) = (await scene.evil.say(reports=[good])).verdicts
        assert verdict.state == "recorded", verdict.reason
        assert (await scene.cluster.end_of(execution_id)).status == "completed"

    staged(tmp_path, act)
