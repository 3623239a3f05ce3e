"""What two executions have in common, also behind many restarts."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.steps import noop, playbook, step

from noetl.control.forgetting import History, Recorded
from noetl.messages import events as e
from noetl.server.library import plan_from
from noetl.server.views.differences import differences_of

PLAN = plan_from(playbook(step("start", noop("t"))))
MANY = 3_000


class Chain:
    """Logs, each of which is a restart of the one before."""

    async def history(self, execution_id: str) -> History:
        number = int(execution_id)
        requested = e.ExecutionRequested(
            path="p", digest="d", origin_execution_id=str(number - 1) if number else None
        )
        return History([Recorded(1, 0, requested), Recorded(2, 0, e.ExecutionCancelled())], PLAN)

    async def events(self, execution_id: str) -> AsyncIterator[e.Event]:
        for one in (await self.history(execution_id)).events:
            yield one.event


@pytest.mark.rule("RST-1")
def test_thousands_of_restarts_in_a_row_are_followed() -> None:
    found = asyncio.run(differences_of(str(MANY), "0", Chain()))
    assert found.differences == []


class Long(Chain):
    """The log of a loop with very many iterations."""

    async def history(self, execution_id: str) -> History:
        raise AssertionError(f"all of {execution_id} is kept in memory")

    async def events(self, execution_id: str) -> AsyncIterator[e.Event]:
        yield e.ExecutionRequested(path="p", digest="d")
        yield e.StepScheduled(step="start", step_run_id="4.0", tokens=["3"])
        for number in range(1, MANY + 1):
            said: list[object] = [number] * 20 if number != 7 else [execution_id]
            done = {"status": "ok", "result": {"rows": said}, "error": None}
            ids: dict[str, Any] = {"step": "start", "step_run_id": "4.0", "task": "t"}
            yield e.TaskDone(**ids, task_run_id=f"4.{number}.1", outcome=done)


@pytest.mark.rule("RST-1")
def test_a_long_log_is_never_in_memory_as_a_whole() -> None:
    found = asyncio.run(differences_of("left", "right", Long()))
    assert (found.same, found.parted) == (MANY - 1, 1)
    assert [one.place for one in found.differences] == ["7.1"]
