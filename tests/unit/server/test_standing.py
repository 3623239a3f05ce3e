"""How long an execution took, or runs by now."""

import time

from noetl.ports.event_log import ExecutionRow
from noetl.server.views.standing import lasted


def row(finished_at: int | None = None) -> ExecutionRow:
    began = int(time.time() * 1000) - 60_000
    return ExecutionRow(
        execution_id="x",
        path="p",
        digest="d",
        status="running",
        started_at=began,
        updated_at=began + 5,
        finished_at=None if finished_at is None else began + finished_at,
    )


def test_what_runs_has_run_until_now_and_what_stopped_until_then() -> None:
    """A run that waits writes nothing for hours: its last decision is not its length."""
    assert lasted(row(), interrupted=False) >= 60_000
    assert lasted(row(), interrupted=True) == 5
    assert lasted(row(finished_at=9), interrupted=False) == 9
