"""START-1: a range of planned times costs what is in it."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from tests.support.triggers import scheduled

from noetl.adapters.memory.storage import MemoryStorage
from noetl.api import questions
from noetl.node import trigger_trials
from noetl.playbook.load import load_trigger
from noetl.playbook.occurrences import Schedule, times

SPARSE = load_trigger(scheduled("0 0 29 2 *"))


@pytest.mark.rule("START-1")
def test_no_time_behind_the_range_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call looked for the next thousand, four millennia of leap days, on the event loop."""
    found: list[int] = []
    where: set[int] = set()

    def counted(schedule: Schedule, *, after: int) -> Iterator[int]:
        where.add(threading.get_ident())
        for time in times(schedule, after=after):
            found.append(time)
            yield time

    monkeypatch.setattr(trigger_trials, "times", counted)
    asked = questions.planned_times(MemoryStorage(), SPARSE, "2024-01-01", "2030-01-01")
    told = asyncio.run(asked)
    assert [one.at for one in told] == ["2024-02-29T00:00:00.000Z", "2028-02-29T00:00:00.000Z"]
    assert len(found) == 3
    assert where != {threading.get_ident()}
