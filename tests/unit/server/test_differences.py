"""What two executions have in common, also behind many restarts."""

import asyncio

import pytest
from tests.support.steps import noop, playbook, step

from noetl.control.forgetting import History, Recorded
from noetl.messages import events as e
from noetl.server.library import plan_from
from noetl.server.views.differences import differences_of

PLAN = plan_from(playbook(step("start", noop("t"))))
MANY = 3_000


@pytest.mark.rule("RST-1")
def test_thousands_of_restarts_in_a_row_are_followed() -> None:
    async def read(execution_id: str) -> History:
        number = int(execution_id)
        requested = e.ExecutionRequested(
            path="p", digest="d", origin_execution_id=str(number - 1) if number else None
        )
        return History([Recorded(1, 0, requested), Recorded(2, 0, e.ExecutionCancelled())], PLAN)

    found = asyncio.run(differences_of(str(MANY), "0", read))
    assert found.differences == []
