"""Spans as OTLP has them, read back with the official protobufs."""

from typing import Any

import pytest
from tests.support.collector import parsed
from tests.unit.exports.stories import ID, RUN, each, envelopes_of, event, listed, run
from yarl import URL

from noetl.errors import ReceiverUnavailable
from noetl.exports.otlp import check_answer, request_of, spans_of, traces_url, value_of, written
from noetl.exports.reading import WHOLE, Cut
from noetl.exports.spans import EXECUTION, Span
from noetl.messages.trace import span_id, trace_id


def span(**changes: Any) -> Span:
    fields: dict[str, Any] = {
        "entity": ("task", "4.1"),
        "parent": ("step", "4.0"),
        "name": "fetch",
        "start": 1_794_783_260_901,
        "end": 1_794_783_260_999,
        "attributes": {},
    }
    return Span(**{**fields, **changes})


def read_back(*some: Span) -> list[Any]:
    request = parsed(request_of([written(ID, one, ID) for one in some]))
    (resource,) = request.resource_spans
    (scope,) = resource.scope_spans
    assert resource.resource.attributes[0].key == "service.name"
    assert resource.resource.attributes[0].value.string_value == "noetl"
    assert scope.scope.name == "noetl"
    return list(scope.spans)


def test_a_span_reads_back_as_it_was() -> None:
    (told,) = read_back(
        span(
            attributes={"noetl.task": "fetch", "noetl.attempt": 2, "noetl.unfinished": True},
            links=[("other", EXECUTION), (ID, EXECUTION)],
            notes=[(1_794_783_260_950, "task.suspended")],
            notes_left_out=7,
            error="no answer",
        )
    )
    assert told.trace_id.hex() == trace_id(ID)
    assert told.span_id.hex() == span_id(ID, ("task", "4.1"))
    assert told.parent_span_id.hex() == span_id(ID, ("step", "4.0"))
    assert (told.name, told.kind) == ("fetch", 1)
    assert told.start_time_unix_nano == 1_794_783_260_901_000_000
    assert told.end_time_unix_nano == 1_794_783_260_999_000_000
    assert {one.key: one.value.WhichOneof("value") for one in told.attributes} == {
        "noetl.task": "string_value",
        "noetl.attempt": "int_value",
        "noetl.unfinished": "bool_value",
    }
    assert (told.status.code, told.status.message) == (2, "no answer")
    assert [link.trace_id.hex() for link in told.links] == [trace_id("other"), trace_id(ID)]
    assert [link.span_id.hex() for link in told.links] == [
        span_id("other", EXECUTION),
        span_id(ID, EXECUTION),
    ]
    assert [(e.time_unix_nano, e.name) for e in told.events] == [
        (1_794_783_260_950_000_000, "task.suspended")
    ]
    assert told.dropped_events_count == 7


def test_a_root_has_no_parent_and_success_no_code() -> None:
    (told,) = read_back(span(entity=EXECUTION, parent=None))
    assert told.parent_span_id == b""
    assert told.status.code == 0


def test_a_request_holds_many_spans_in_order() -> None:
    told = read_back(*(span(name=f"t{n}") for n in range(3)))
    assert [one.name for one in told] == ["t0", "t1", "t2"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, {"boolValue": True}),
        (7, {"intValue": "7"}),
        (2**40, {"intValue": "1099511627776"}),
        ("é\u0000", {"stringValue": "é\u0000"}),
        (1.5, {"stringValue": "1.5"}),
        (None, {"stringValue": "null"}),
        ({"a": [1]}, {"stringValue": '{"a":[1]}'}),
    ],
)
def test_values_by_type(value: Any, expected: dict[str, Any]) -> None:
    assert value_of(value) == expected


STORY = envelopes_of(
    (1000, event("playbook.execution.requested", path="p")),
    (1001, event("step.scheduled", tokens=[], **RUN)),
    (1002, event("step.done", **RUN)),
    (1003, event("workflow.finished", status="completed")),
    (1003, event("playbook.processed", status="completed")),
)


@pytest.mark.parametrize(
    ("cut", "names"),
    [
        (WHOLE, ["load", "p"]),
        (Cut(after=2), ["load", "p"]),
        (Cut(after=3), ["p"]),
        (Cut(after=5), []),
        (Cut(since=1003), ["p"]),
    ],
)
def test_a_span_belongs_to_the_event_that_ends_it(cut: Cut, names: list[str]) -> None:
    """Its start may lie before the cut: the log is read from its beginning."""
    found = run(listed(spans_of(ID, each(STORY), cut)))
    assert [
        one.name for one in parsed(request_of(found)).resource_spans[0].scope_spans[0].spans
    ] == (names)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("http://h:4318", "http://h:4318/v1/traces"),
        ("http://h:4318/", "http://h:4318/v1/traces"),
        ("http://h:4318/v1/traces", "http://h:4318/v1/traces"),
        ("https://h/otlp/", "https://h/otlp/v1/traces"),
        ("https://u:p@h/otlp?key=1", "https://u:p@h/otlp/v1/traces?key=1"),
    ],
)
def test_the_path_of_traces(given: str, expected: str) -> None:
    assert str(traces_url(URL(given))) == expected


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{}",
        b"ok",
        b"[]",
        b'{"partialSuccess":{}}',
        b'{"partialSuccess":{"rejectedSpans":"0"}}',
    ],
)
def test_answers_that_mean_yes(answer: bytes) -> None:
    check_answer("http://h/v1/traces", answer)


@pytest.mark.parametrize("number", [b"3", b'"3"'])
def test_a_receiver_that_refuses_some_is_told(number: bytes) -> None:
    answer = b'{"partialSuccess":{"rejectedSpans":%b,"errorMessage":"too old"}}' % number
    with pytest.raises(ReceiverUnavailable) as refused:
        check_answer("http://h/v1/traces", answer)
    assert "http://h/v1/traces" in str(refused.value)
    assert "refused 3 of its spans: too old" in str(refused.value)
