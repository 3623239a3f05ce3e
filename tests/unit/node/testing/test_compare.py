"""What a test expects against what happened."""

from typing import Any

import pytest

from noetl.node.testing.cases import differences, missing_event
from noetl.node.testing.document import Expected
from noetl.server.report import ExecutionReport

REPORT = ExecutionReport(
    execution_id="x1",
    status="completed",
    ctx={"a": 1, "deep": {"b": [1, 2], "c": 3}},
    result={"x": 1},
    error=None,
    steps=[{"step": "start", "runs": 2, "failed": 0, "status": "done"}],
    duration_ms=0,
)


@pytest.mark.parametrize(
    ("expect", "found"),
    [
        ({}, []),
        ({"status": "completed"}, []),
        ({"status": "failed"}, ["status: expected failed, got completed"]),
        ({"steps": {"start": 2, "never": 0}}, []),
        ({"steps": {"start": 1}}, ["steps.start: expected 1 runs, got 2"]),
        ({"ctx": {"deep": {"c": 3}}}, []),
        ({"ctx": {"deep": {"b": [1]}}}, ["ctx.deep.b: expected [1], got [1,2]"]),
        ({"ctx": {"a": {"x": 1}}}, ['ctx.a: expected {"x":1}, got 1']),
        ({"ctx": {"z": "t"}}, ["ctx.z: expected 't', got nothing"]),
        ({"result": {"x": 1}}, []),
        ({"result": None}, ['result: expected null, got {"x":1}']),
        (
            {"error": {"kind": "http"}},
            ["status: expected failed, got completed", 'error: expected {"kind":"http"}, got null'],
        ),
    ],
)
def test_differences(expect: dict[str, Any], found: list[str]) -> None:
    assert list(differences(Expected(**expect), REPORT, [])) == found


@pytest.mark.parametrize(
    ("expected", "found", "said"),
    [
        ([], [], ""),
        (["step.done"], ["step.started", "step.done"], ""),
        (["StepDone", "loop.finished"], ["step.done", "loop.done"], ""),
        (
            ["step.done", "step.done"],
            ["step.done"],
            "events[1]: expected step.done after step.done",
        ),
        (["step.done", "step.started"], ["step.started", "step.done"], "events[1]: expected"),
        (["step.dome"], ["step.done"], "events[0]: 'step.dome' is not an event name"),
    ],
)
def test_events_in_order(expected: list[str], found: list[str], said: str) -> None:
    problems = list(missing_event(expected, found))
    assert len(problems) == bool(said)
    assert not said or problems[0].startswith(said)
