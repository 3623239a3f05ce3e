"""An export as a whole: nothing left out by a busy receiver, nothing counted that was not taken."""

from typing import Any

import pytest
from tests.support.collector import Collector, Reply
from tests.unit.exports.stories import ID, Event, envelopes_of, event, home_of, questions, run
from yarl import URL

from noetl.api.types import EventPage, EventView
from noetl.errors import ReceiverUnavailable
from noetl.exports import export as exports
from noetl.exports.export import Export, ExportCounts, Form, send_rows, send_spans
from noetl.exports.otlp import request_of
from noetl.exports.reading import PAGE
from noetl.exports.receiver import Receiver

STEPS = 40


def steps() -> list[tuple[int, list[Event]]]:
    """A request, and so many steps that have ended; the execution still runs."""
    rows = [(1, [event("playbook.execution.requested", path="p")])]
    for number in range(STEPS):
        run_of = {"step": f"s{number}", "step_run_id": f"{number}.0"}
        rows.append((2, [event("step.scheduled", tokens=[], **run_of)]))
        rows.append((3, [event("step.done", **run_of)]))
    return rows


@pytest.fixture(autouse=True)
def _small_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(exports.FORMS, "otlp", Form(joined=request_of, most=8))
    monkeypatch.setitem(exports.FORMS, "clickhouse", Form(most=8))


async def at_once(_seconds: float) -> None:
    """Pauses are not what is tested."""


def sent(collector: Collector, form: str, **options: Any) -> ExportCounts:
    async def send() -> ExportCounts:
        job = Export(questions(await home_of({ID: steps()})).events, [ID], form)
        url = URL(collector.url)
        try:
            async with Receiver(url, content_type="application/json", pause=at_once) as receiver:
                if form == "otlp":
                    await send_spans(job, receiver)
                else:
                    await send_rows(job, receiver, "t", **options)
        except ReceiverUnavailable:
            assert not collector.replies, "it was asked as often as it had an answer"
        return job.tally

    tally: ExportCounts = run(send())
    return tally


def test_a_receiver_that_is_busy_now_and_then_gets_everything(collector: Collector) -> None:
    collector.replies = [Reply(200), Reply(503), Reply(429), Reply(200), Reply(502)]
    tally = sent(collector, "otlp")
    assert [span.name for span in collector.spans] == [f"s{number}" for number in range(STEPS)]
    assert len(collector.requests) == 5
    assert tally == ExportCounts(executions=1, events=81, pieces=STEPS, last_seq=81)


def test_only_what_was_taken_is_counted(collector: Collector) -> None:
    collector.replies = [Reply(200), Reply(200), Reply(413)]
    assert sent(collector, "otlp").pieces == 16


def test_a_table_is_made_only_where_that_was_asked_for(collector: Collector) -> None:
    collector.replies = [Reply(202)] * 30
    assert sent(collector, "clickhouse", create=False).pieces == 81
    inserts = len(collector.paths)
    assert inserts == 11
    assert all(path.startswith("/?query=insert+into+t+") for path in collector.paths)
    sent(collector, "clickhouse", create=True)
    assert collector.paths[inserts : inserts + 2] == ["/", "/"]  # the table, its later columns
    assert len(collector.paths) == 2 * inserts + 2


class Endless:
    """A log that goes on for ever, and counts how much of it was read."""

    def __init__(self) -> None:
        self.read_so_far = 0

    async def events(self, execution_id: str, *, after: int, limit: int) -> EventPage:
        self.read_so_far += limit
        [(_, one)] = envelopes_of((1, event("execution.paused")), execution_id=execution_id)
        told = [EventView(**one | {"seq": after + number}) for number in range(1, limit + 1)]
        return EventPage(events=told, after=after + limit, more=True)


def test_a_log_is_read_as_it_is_taken() -> None:
    """However long it is: not more than a page is held beside the body that is being sent."""
    log = Endless()

    async def take_some() -> int:
        job = Export(log.events, [ID], "clickhouse")
        taken = 0
        async for body in job.bodies():
            taken += body.pieces
            if taken == 80 * PAGE:
                return taken
        return taken

    assert run(take_some()) == 80 * PAGE
    assert log.read_so_far <= 82 * PAGE
