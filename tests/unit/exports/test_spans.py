"""Which spans follow from a log, with their parents, times and states."""

from typing import Any

import pytest
from tests.unit.exports.stories import ID, RUN, Event, done, envelopes_of, event

from noetl.exports.spans import EXECUTION, MOST_NOTES, Span, Trace
from noetl.messages.trace import span_id, trace_id

BEGUN: list[tuple[int, Event]] = [
    (1000, event("playbook.execution.requested", path="demo/load", version="3")),
    (1000, event("workflow.started", step="load")),
    (1001, event("token.created", step="load", token_id="2.0")),
    (1001, event("step.scheduled", tokens=["2.0"], **RUN)),
    (1005, event("step.started", **RUN)),
]
FINISHED: list[tuple[int, Event]] = [
    (2000, event("workflow.finished", status="completed")),
    (2000, event("playbook.processed", status="completed")),
]


def spans(*rows: tuple[int, Event], trace_id: str | None = None) -> list[Span]:
    trace = Trace(ID)
    told = envelopes_of(*rows, trace_id=trace_id)
    found = [span for at, event in told for span in trace.take(at, event)]
    assert trace.open == 0, "everything has ended"
    return found


def started(task_run_id: str, **fields: Any) -> Event:
    told = {"task": "fetch", "kind": "http", **RUN, **fields}
    return event("task.started", task_run_id=task_run_id, **told)


def shape(found: list[Span]) -> list[tuple[Any, ...]]:
    return [(span.entity, span.parent, span.start, span.end) for span in found]


def test_a_step_of_one_task() -> None:
    found = spans(
        *BEGUN,
        (1005, started("4.1")),
        (1100, done("fetch", 1010, 80, task_run_id="4.1")),
        (1101, event("step.done", **RUN)),
        *FINISHED,
    )
    assert shape(found) == [
        (("task", "4.1"), ("step", "4.0"), 1010, 1090),
        (("step", "4.0"), EXECUTION, 1010, 1090),
        (EXECUTION, None, 1000, 2000),
    ]
    task, step, root = found
    assert [span.name for span in found] == ["fetch", "load", "demo/load"]
    assert [span.error for span in found] == [None, None, None]
    assert task.attributes == {
        "noetl.step": "load",
        "noetl.task": "fetch",
        "noetl.task_run_id": "4.1",
        "noetl.kind": "http",
        "noetl.attempt": 1,
        "noetl.do": "continue",
        "noetl.worker": "w1",
    }
    assert step.attributes == {"noetl.step": "load", "noetl.step_run_id": "4.0"}
    assert step.notes == [(1005, "step.started")]
    assert root.attributes == {
        "noetl.execution_id": ID,
        "noetl.path": "demo/load",
        "noetl.version": "3",
        "noetl.status": "completed",
    }


def test_attempts_are_spans_where_there_is_more_than_one() -> None:
    found = spans(
        *BEGUN,
        (1005, started("4.1")),
        (1030, done("fetch", 1010, 10, task_run_id="4.1", error="http", do="retry")),
        (1040, event("task.suspended", task="fetch", task_run_id="4.1", reason="retry", **RUN)),
        (1050, started("4.1", attempt=2)),
        (1080, done("fetch", 1060, 15, task_run_id="4.1", attempt=2)),
        (1090, event("step.done", **RUN)),
        *FINISHED,
    )
    assert shape(found)[:3] == [
        (("attempt", "4.1/1"), ("task", "4.1"), 1010, 1020),
        (("attempt", "4.1/2"), ("task", "4.1"), 1060, 1075),
        (("task", "4.1"), ("step", "4.0"), 1010, 1075),
    ]
    first, second, task = found[:3]
    assert (first.error, second.error, task.error) == ("a fault of http", None, None)
    assert first.attributes["noetl.error.kind"] == first.attributes["error.type"] == "http"
    assert "error.type" not in task.attributes, "the last attempt went well"
    assert (task.attributes["noetl.attempt"], task.attributes["noetl.do"]) == (2, "continue")
    assert task.notes == [(1040, "task.suspended")]


def test_a_failure_has_its_kind_at_every_level() -> None:
    error = {"kind": "retry_exhausted", "message": "gave up", "retryable": False}
    found = spans(
        *BEGUN,
        (1005, started("4.1")),
        (1030, done("fetch", 1010, 9, task_run_id="4.1", error="http", do="retry")),
        (1031, started("4.1", attempt=2)),
        (1050, _exhausted(error)),
        (1050, event("step.failed", error=error, **RUN)),
        (1050, event("workflow.finished", status="failed", error={"step": "load", **error})),
        (1050, event("playbook.processed", status="failed")),
    )
    kinds = [(span.entity[0], span.attributes.get("noetl.error.kind")) for span in found]
    assert kinds == [
        ("attempt", "http"),
        ("attempt", "http"),
        ("task", "retry_exhausted"),
        ("step", "retry_exhausted"),
        ("execution", "retry_exhausted"),
    ]
    assert [span.error for span in found][2:] == ["gave up"] * 3


def _exhausted(error: Event) -> Event:
    told = done("fetch", 1040, 9, task_run_id="4.1", attempt=2, error="http", do="fail")
    return {**told, "error": error}


def test_iterations_and_nested_loops_are_levels_of_their_own() -> None:
    inner = {"parent_id": "4.1.1", **RUN}
    found = spans(
        *BEGUN,
        (1010, event("loop.started", total=1, items=[7], mode="parallel", **RUN)),
        (1011, event("loop.iteration.started", index=0, iteration_id="4.1", **RUN)),
        (1012, started("4.1.1", kind="iterator", task="inner")),
        (1012, event("loop.started", total=1, items=[8], mode="sequential", **inner)),
        (1013, event("loop.iteration.started", index=0, iteration_id="4.1.1.1", **inner)),
        (1014, started("4.1.1.1.1", task="deep")),
        (1015, done("deep", 1014, 1, task_run_id="4.1.1.1.1")),
        (1016, event("loop.iteration.done", index=0, iteration_id="4.1.1.1", **inner)),
        (1017, event("loop.done", total=1, done=1, **inner)),
        (1018, done("inner", 1012, 6, task_run_id="4.1.1")),
        (1019, event("loop.iteration.done", index=0, iteration_id="4.1", **RUN)),
        (1020, event("loop.done", total=1, done=1, **RUN)),
        *FINISHED,
    )
    assert shape(found)[:-1] == [
        (("task", "4.1.1.1.1"), ("iteration", "4.1.1.1"), 1014, 1015),
        (("iteration", "4.1.1.1"), ("task", "4.1.1"), 1014, 1015),
        (("task", "4.1.1"), ("iteration", "4.1"), 1012, 1018),
        (("iteration", "4.1"), ("step", "4.0"), 1012, 1018),
        (("step", "4.0"), EXECUTION, 1012, 1018),
    ]
    by_id = {span.entity[1]: span.attributes for span in found}
    assert (by_id["4.0"]["noetl.loop.total"], by_id["4.0"]["noetl.loop.mode"]) == (1, "parallel")
    assert by_id["4.1.1"]["noetl.loop.mode"] == "sequential"
    assert by_id["4.1"]["noetl.index"] == 0
    assert found[3].name == "load:0"


def test_iterations_that_share_a_row_have_times_of_their_own() -> None:
    found = spans(
        *BEGUN,
        (1010, event("loop.started", total=2, items=[], mode="sequential", **RUN)),
        (1700, event("loop.iteration.started", index=0, iteration_id="4.1", **RUN)),
        (1700, started("4.1.1")),
        (1700, done("fetch", 1020, 300, task_run_id="4.1.1")),
        (1700, event("loop.iteration.done", index=0, iteration_id="4.1", **RUN)),
        (1700, event("loop.iteration.started", index=1, iteration_id="4.2", **RUN)),
        (1700, started("4.2.1")),
        (1700, done("fetch", 1330, 300, task_run_id="4.2.1")),
        (1700, event("loop.iteration.done", index=1, iteration_id="4.2", **RUN)),
        (1700, event("loop.done", total=2, done=2, **RUN)),
        *FINISHED,
    )
    times = {span.entity[1]: (span.start, span.end) for span in found}
    assert (times["4.1"], times["4.2"]) == ((1020, 1320), (1330, 1630))
    assert times["4.0"] == (1020, 1630)


def test_a_run_with_a_task_that_never_answered_ends_with_its_record() -> None:
    found = spans(
        *BEGUN,
        (1010, started("4.1")),
        (1100, done("fetch", 1010, 80, task_run_id="4.1")),
        (1101, started("4.2")),
        (1900, event("step.failed", error={"kind": "worker_lost"}, **RUN)),
        *FINISHED,
    )
    assert [(span.start, span.end) for span in found if span.entity[0] == "step"] == [(1010, 1900)]


def test_a_failed_iteration_fails_alone() -> None:
    error = {"kind": "python", "message": "no", "retryable": False}
    found = spans(
        *BEGUN,
        (1010, event("loop.started", total=2, items=[], mode="parallel", **RUN)),
        (1011, event("loop.iteration.started", index=0, iteration_id="4.1", **RUN)),
        (1011, event("loop.iteration.started", index=1, iteration_id="4.2", **RUN)),
        (1012, event("loop.iteration.done", index=1, iteration_id="4.2", **RUN)),
        (1013, event("loop.iteration.failed", index=0, iteration_id="4.1", error=error, **RUN)),
        (1014, event("loop.done", total=2, done=1, failed=1, **RUN)),
        *FINISHED,
    )
    assert [(span.entity[1], span.error) for span in found] == [
        ("4.2", None),
        ("4.1", "no"),
        ("4.0", None),
        ("", None),
    ]
    assert found[2].attributes["noetl.loop.failed"] == 1


def test_what_never_told_its_end_ends_with_what_it_is_part_of() -> None:
    found = spans(
        *BEGUN,
        (1010, event("loop.started", total=1, items=[], mode="parallel", **RUN)),
        (1011, event("loop.iteration.started", index=0, iteration_id="4.1", **RUN)),
        (1012, started("4.1.1")),
        (1500, event("execution.cancelled", by="cancel")),
        (1600, event("workflow.finished", status="cancelled")),
        (1600, event("playbook.processed", status="cancelled")),
    )
    assert [(s.entity[1], s.end, s.attributes.get("noetl.unfinished")) for s in found] == [
        ("4.1.1", 1600, True),
        ("4.1", 1600, True),
        ("4.0", 1600, None),
        ("", 1600, None),
    ]
    assert found[-1].error == "cancelled"
    assert found[-1].notes == [(1500, "execution.cancelled")]


def test_steps_are_linked_to_what_caused_them() -> None:
    second = {"step": "store", "step_run_id": "9.0"}
    arrived = {"step": "store", "parent_step_run_id": "4.0"}
    found = spans(
        *BEGUN,
        (1006, event("step.done", **RUN)),
        (1006, event("token.created", token_id="6.0", **arrived)),
        (1006, event("token.created", token_id="6.1", **arrived)),
        (1006, event("token.absorbed", token_id="6.1", step="store")),
        (1007, event("step.scheduled", tokens=["6.0"], **second)),
        (1008, event("step.done", **second)),
        *FINISHED,
    )
    assert found[0].links == [], "the entry token has no cause among the steps"
    assert found[1].links == [(ID, ("step", "4.0"))]


def test_a_child_is_below_the_task_that_called_it() -> None:
    requested = event(
        "playbook.execution.requested", path="c", parent_execution_id="parent", parent_id="4.1"
    )
    ended = event("playbook.processed", status="completed")
    (root,) = spans((1, requested), (2, ended), trace_id="parent")
    assert (root.above, root.links) == (span_id("parent", ("task", "4.1")), [])


def test_a_child_of_an_older_log_is_linked_to_the_task_that_called_it() -> None:
    """It was a trace of its own."""
    requested = event(
        "playbook.execution.requested", path="c", parent_execution_id="parent", parent_id="4.1"
    )
    (root,) = spans((1, requested), (2, event("playbook.processed", status="completed")))
    assert (root.above, root.links) == (None, [("parent", ("task", "4.1"))])


def test_an_execution_is_below_the_span_of_whoever_asked_for_it() -> None:
    asked = event("playbook.execution.requested", path="c", parent_id="00f067aa0ba902b7")
    ended = event("playbook.processed", status="completed")
    (root,) = spans((1, asked), (2, ended), trace_id="4bf92f3577b34da6a3ce929d0e0e4736")
    assert root.above == "00f067aa0ba902b7"


def test_an_execution_that_runs_hands_out_only_what_has_ended() -> None:
    trace = Trace(ID)
    rows = [*BEGUN, (1005, started("4.1")), (1100, done("fetch", 1010, 80, task_run_id="4.1"))]
    found = [span for at, told in envelopes_of(*rows) for span in trace.take(at, told)]
    assert [span.entity for span in found] == [("task", "4.1")]
    assert trace.open == 2, "the step run and the execution"


def test_a_task_that_was_delivered_again_is_one_span() -> None:
    found = spans(
        *BEGUN,
        (1005, started("4.1")),
        (1050, event("lease.expired", epoch=1, **RUN)),
        (1060, started("4.1")),
        (1100, done("fetch", 1065, 5, task_run_id="4.1")),
        (1101, event("step.done", **RUN)),
        *FINISHED,
    )
    assert shape(found)[0] == (("task", "4.1"), ("step", "4.0"), 1065, 1070)
    assert found[1].notes == [(1005, "step.started"), (1050, "lease.expired")]


def test_notes_are_bounded_and_what_is_left_out_is_counted() -> None:
    expired = [(1100, event("lease.expired", epoch=n, **RUN)) for n in range(100)]
    found = spans(*BEGUN, *expired, (1200, event("step.done", **RUN)), *FINISHED)
    assert len(found[0].notes) == MOST_NOTES
    assert found[0].notes_left_out == 101 - MOST_NOTES


@pytest.mark.parametrize(
    ("error", "message", "kind"),
    [
        ({"kind": "http", "message": "x" * 5000}, "x" * 1000, "http"),
        ({"$ref": {"store": "files", "key": "k"}}, "", None),
        (None, "", None),
        ("a word", "", None),
    ],
)
def test_any_error_is_told_in_bounds(error: Any, message: str, kind: str | None) -> None:
    found = spans(*BEGUN, (1006, event("step.failed", error=error, **RUN)), *FINISHED)
    assert found[0].error == message
    assert found[0].attributes.get("noetl.error.kind") == kind


def test_a_clock_that_went_back_gives_no_negative_span() -> None:
    found = spans(*BEGUN, (900, event("step.done", **RUN)), *FINISHED)
    assert (found[0].start, found[0].end) == (1001, 1001)


def test_ids_are_derived_and_differ() -> None:
    assert trace_id(ID) == trace_id(ID)
    entities = [EXECUTION, ("step", "4.1"), ("task", "4.1"), ("iteration", "4.1")]
    ids = {span_id(execution, entity) for execution in (ID, "other") for entity in entities}
    assert len(ids) == 8
    assert {len(trace_id(ID)), *map(len, ids)} == {32, 16}
