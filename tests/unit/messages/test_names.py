"""The table of events has a row for each, and says who may tell it."""

from typing import Any

import pytest

from noetl.messages import events as e
from noetl.messages.names import CLASSES, EVENTS, FIELDS, PLAIN, REPORTED, held_by
from noetl.messages.written import HOLDS


@pytest.mark.rule("EVT-2")
def test_every_event_has_its_row() -> None:
    assert CLASSES.keys() == EVENTS.keys()
    assert {about.by for about in EVENTS.values()} == {"server", "worker", "either"}


@pytest.mark.rule("EVT-2", "LOOP-10")
def test_what_a_worker_may_tell() -> None:
    assert {kind.__struct_config__.tag for kind in REPORTED} == {
        *("step.started", "step.done", "step.failed"),
        *("task.started", "task.cached", "task.done", "task.suspended", "wait.started"),
        *("loop.started", "loop.iteration.started", "loop.done"),
        *("loop.iteration.done", "loop.iteration.failed"),
    }
    assert e.TokenClaimed not in REPORTED


class WordsAdded(e.StepEvent, frozen=True, kw_only=True, tag="words.added"):
    hint: str | None = None


class ValuesAdded(e.StepEvent, frozen=True, kw_only=True, tag="values.added"):
    seen: list[Any]


class NumbersAdded(e.StepEvent, frozen=True, kw_only=True, tag="numbers.added"):
    seconds: float | None = None
    counts: list[int]
    error: dict[str, Any] | None = None


@pytest.mark.rule("EVT-4", "KEY-3")
@pytest.mark.parametrize("kind", [WordsAdded, ValuesAdded])
def test_a_field_that_could_hold_a_secret_is_classified(kind: type[e.Event]) -> None:
    with pytest.raises(ImportError, match="belongs into FIELDS or PLAIN"):
        held_by(kind)


@pytest.mark.rule("EVT-4", "KEY-3")
def test_numbers_need_no_row() -> None:
    assert held_by(NumbersAdded) == {"error": FIELDS["error"]}


def test_every_row_of_a_field_is_needed() -> None:
    used = {field for kind in CLASSES.values() for field in kind.__struct_fields__}
    assert (FIELDS.keys() | PLAIN) - used == set()
    assert FIELDS.keys() & PLAIN == set()


@pytest.mark.rule("EVT-4")
def test_of_two_values_of_one_size_the_first_moves_first() -> None:
    """Old logs are verified: the order is part of what was decided."""
    assert list(HOLDS[e.TaskDone]) == [
        *("outcome", "set_iter", "set_ctx", "set_prev", "error", "inputs")
    ]
    assert list(HOLDS[e.WorkflowFinished]) == ["result", "error"]
