"""Lists of 200 executions whose errors quote payloads of a megabyte."""

import pytest
from msgspec.structs import replace

from noetl.api.selecting import RowFilter
from noetl.expression.failure import LONGEST_REASON
from noetl.ports.event_log import ExecutionRow
from noetl.server.appending import told
from noetl.server.views.standing import listed_of

ROW = ExecutionRow(
    execution_id="e1",
    path="shop/load",
    digest="d",
    status="failed",
    started_at=1,
    updated_at=2,
    error="x" * 1_000_000 + "end",
)


@pytest.mark.rule("SRV-1")
def test_a_list_shows_the_beginning_of_an_error() -> None:
    failed = listed_of(ROW, interrupted=False)
    noted = listed_of(replace(ROW, status="completed"), interrupted=False)
    assert (failed.error, noted.note) == (told(ROW.error),) * 2
    assert len(failed.error or "") == LONGEST_REASON + 1
    assert told("short") == "short"
    assert told(None) is None


async def test_nor_is_more_of_it_searched() -> None:
    wanted, gone = (RowFilter(None, None, text, None) for text in ("xx", "end"))  # type: ignore[arg-type]
    assert await wanted.fits(ROW)
    assert not await gone.fits(ROW)
