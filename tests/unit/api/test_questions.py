"""What is asked of a control plane, by the routes of a server and by commands on a home."""

from typing import Any

import pytest
from tests.support.api import SmallPlane

from noetl.api import questions
from noetl.ports.event_log import PrintedLine


class Printing(SmallPlane):
    """A plane that knows every execution."""

    async def row(self, execution_id: str) -> Any:
        return execution_id


async def test_pages_of_printed_lines_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the farthest line the last page had led to itself, again and again."""
    monkeypatch.setattr(questions, "FARTHEST", 2)
    plane = Printing()
    for number in range(5):
        line = PrintedLine(
            execution_id="x",
            step="work",
            task_run_id="4.1",
            attempt=1,
            at=0,
            stream="stdout",
            text=str(number),
        )
        plane.storage.printed.keep(line)
    asked, found, cursor = questions.PlaneQuestions(plane), [], None
    for _ in range(10):
        page = await asked.lines("x", cursor=cursor, limit=1)
        found += [line.text for line in page.lines]
        cursor = page.next
        if cursor is None:
            break
    assert (found, cursor) == (["0", "1"], None)
