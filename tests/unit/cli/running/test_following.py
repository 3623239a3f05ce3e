"""An execution of a server as it is shown here: the events that come, out of their envelopes."""

from typing import Any

import msgspec
import pytest
from tests.unit.cli.running.shown import BUSY, OK, loop_started, requested, scheduled, task_done

from noetl.api.types import EventView, Summary
from noetl.cli.running.following import inside
from noetl.messages import events as e
from noetl.messages.codec import encode_events
from noetl.messages.envelope import envelope
from noetl.server.report import ExecutionReport


def wrapped(event: e.Event) -> EventView:
    """As the API would tell of it."""

    [fields] = msgspec.json.decode(encode_events([event]))
    return EventView(**envelope(fields, execution_id="x", seq=1, at=0, trace_id=None))


@pytest.mark.parametrize(
    "event",
    [
        requested(),
        scheduled(),
        loop_started(5),
        task_done(OK),
        task_done(BUSY, do="retry", delay=1.0),
        e.StepDone(step="work", step_run_id="4.0", result=1),
        e.TokenClaimed(step="work", step_run_id="4.0", worker="w", epoch=1, part=2),
        e.WorkflowFinished(status="completed"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_an_event_comes_out_of_its_envelope(event: e.Event) -> None:
    assert inside(wrapped(event)) == [event]


def test_a_server_of_a_release_before_calls_a_part_by_its_key_in_the_log() -> None:
    event = e.TokenClaimed(step="work", step_run_id="4.0", worker="w", epoch=1, part=2)
    view = msgspec.structs.replace(wrapped(event), data={"worker": "w", "epoch": 1, "leg": 2})
    assert inside(view) == [event]


@pytest.mark.parametrize("change", [{"name": "step.juggled"}, {"data": {"tokens": 5}}])
def test_what_a_newer_server_tells_is_left_out(change: dict[str, Any]) -> None:

    assert inside(msgspec.structs.replace(wrapped(scheduled()), **change)) == []


def test_a_summary_is_reported_as_a_run_is() -> None:
    fields: dict[str, Any] = {
        "execution_id": "x",
        "status": "completed",
        "ctx": {"a": 1},
        "result": [1],
        "error": None,
        "duration_ms": 7,
    }
    steps = [{"step": "s", "runs": 1, "failed": 0, "status": "done"}]

    report: ExecutionReport = msgspec.convert({**fields, "steps": steps}, Summary)
    assert {name: getattr(report, name) for name in fields} == fields
    assert report.steps == steps
