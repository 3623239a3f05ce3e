"""A log is read from its beginning, however long it is, and others go on meanwhile."""

import asyncio

import pytest

from noetl.adapters.memory.storage import MemoryStorage
from noetl.ports.event_log import Decision, ExecutionRow
from noetl.server.replay import rows_of

ROWS = 200


@pytest.mark.rule("EVT-5")
async def test_a_long_log_leaves_others_their_turns() -> None:
    """Who compares two executions, or proves one, had the server to himself until the end."""
    home = MemoryStorage()
    row = ExecutionRow(
        execution_id="e1", path="p", digest="d", status="running", started_at=1, updated_at=1
    )
    for number in range(ROWS):
        first = row if number == 0 else None
        text = b'[{"name":"%b"}]' % (b"x" * 10_000)
        await home.log.append(
            Decision(
                execution_id="e1", expected=number, last=number + 1, at=1, events=text, row=first
            )
        )
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    beside = asyncio.create_task(others())
    await asyncio.sleep(0)
    before = turns
    assert len([one async for one in rows_of(home.log, "e1")]) == ROWS
    assert turns - before >= ROWS * 10_000 // 65_536 - 2
    beside.cancel()
