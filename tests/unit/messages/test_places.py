"""One name of a place for people, whatever its id looks like (EVT-0)."""

import pytest

from noetl.messages.places import iteration_place, outer_index, place_of


@pytest.mark.parametrize(
    ("task_run_id", "place"),
    [
        (None, "charge"),
        ("4.2", "charge"),
        ("4.5.1", "charge:4"),
        ("4.5.2.3.1", "charge:4/2"),
        ("4.5.2.3r2.1", "charge:4/2"),
        ("4.5.2.3.1.7.1", "charge:4/2/6"),
        ("4.2.3.1", "charge/2"),
    ],
)
def test_a_task_run_is_told_by_its_iterations(task_run_id: str | None, place: str) -> None:
    assert place_of("charge", task_run_id) == place


def test_a_step_may_be_called_anything() -> None:
    assert place_of("a/b:c.d", "4.5.1") == "a/b:c.d:4"
    assert (outer_index("4.5.1"), outer_index("4.5.2.3.1"), outer_index("4.2.3.1")) == (4, 4, None)


def test_the_run_is_named_where_it_must_be() -> None:
    assert place_of("charge", "12.5.1", run=True) == "charge@12:4"


@pytest.mark.parametrize(
    ("iteration_id", "place"),
    [("4.5", "charge:4"), ("4.5.2.3", "charge:4/2"), ("4.2.3", "charge/2")],
)
def test_an_iteration_is_told_as_its_tasks_are(iteration_id: str, place: str) -> None:
    assert iteration_place("charge", iteration_id) == place
