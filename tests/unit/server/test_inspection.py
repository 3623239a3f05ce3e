"""What a worker sends is looked at before it is taken: it may tell only what is its own to tell."""

from typing import Any

import msgspec
import pytest

from noetl.control.execution import Execution, Part, Run
from noetl.messages import events as e
from noetl.messages.codec import encode_events
from noetl.ports.link import Hold, Sent
from noetl.server.inspection import Unfit, inspected

RUN: dict[str, Any] = {"step": "s", "step_run_id": "4.0"}


def look(*events: e.Event) -> list[e.Event]:
    hold = Hold(execution_id="x1", step_run_id="4.0", part=0, epoch=1)
    sent = Sent(hold=hold, after=0, events=msgspec.Raw(encode_events(list(events))))
    run = Run(step_run_id="4.0", step="s", args={}, ctx={})
    return inspected(sent, Execution(execution_id="x1"), run, Part(part=0))


def test_what_is_its_own_is_taken() -> None:
    told = [e.StepStarted(**RUN), e.StepDone(**RUN, result=1)]
    assert look(*told) == told


@pytest.mark.rule("EVT-1", "EVT-3")
@pytest.mark.parametrize(
    ("event", "says"),
    [
        (e.TokenClaimed(**RUN, worker="w", epoch=1), "not a worker's to report"),
        (e.StepDone(step="s", step_run_id="9.0"), "another run"),
        (e.StepFailed(**RUN, error={}, source="server"), "only the server may send"),
        (e.StepDone(**RUN, source="server"), "only the server may send"),
        (e.LoopStarted(**RUN, total=1, items=[1], mode="parallel"), "begun by the server"),
    ],
)
def test_what_is_not_its_own_is_refused(event: e.Event, says: str) -> None:
    with pytest.raises(Unfit, match=says):
        look(event)
