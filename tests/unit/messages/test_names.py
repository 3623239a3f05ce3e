"""The table of events has a row for each, and says who may tell it."""

import pytest

from noetl.messages import events as e
from noetl.messages.names import CLASSES, EVENTS, REPORTED


@pytest.mark.rule("EVT-2")
def test_every_event_has_its_row() -> None:
    assert CLASSES.keys() == EVENTS.keys()
    assert {about.by for about in EVENTS.values()} == {"server", "worker", "either"}


@pytest.mark.rule("EVT-2", "LOOP-10")
def test_what_a_worker_may_tell() -> None:
    assert {kind.__struct_config__.tag for kind in REPORTED} == {
        *("step.started", "step.done", "step.failed"),
        *("task.started", "task.done", "task.suspended"),
        *("loop.started", "loop.iteration.started", "loop.done"),
        *("loop.iteration.done", "loop.iteration.failed"),
    }
    assert e.TokenClaimed not in REPORTED
