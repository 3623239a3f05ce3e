"""Ids of traces and spans, and the header that carries them."""

import pytest

from noetl.messages.trace import trace_id, trace_in, traceparent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (f"00-{TRACE}-{SPAN}-01", (TRACE, SPAN)),
        (f" 00-{TRACE}-{SPAN}-00 ", (TRACE, SPAN)),
        (f"01-{TRACE}-{SPAN}-01-what-comes-later", (TRACE, SPAN)),
        (f"ff-{TRACE}-{SPAN}-01", (None, None)),
        (f"00-{'0' * 32}-{SPAN}-01", (None, None)),
        (f"00-{TRACE}-{'0' * 16}-01", (None, None)),
        (f"00-{TRACE.upper()}-{SPAN}-01", (None, None)),
        (f"00-{TRACE}-{SPAN}", (None, None)),
        ("", (None, None)),
        (None, (None, None)),
    ],
)
def test_a_header_is_read_or_left_alone(
    header: str | None, expected: tuple[str | None, str | None]
) -> None:
    assert trace_in(header) == expected


def test_a_trace_of_w3c_stays_what_it_is() -> None:
    assert trace_id(TRACE) == TRACE
    assert trace_id("x1") != trace_id("x2")
    assert len(trace_id("0" * 32)) == 32
    assert trace_id("0" * 32) != "0" * 32


def test_what_a_task_sends_can_be_read() -> None:
    trace, span = trace_in(traceparent(TRACE, "x1", "4.1"))
    assert trace == TRACE
    assert span is not None
    assert span != trace_in(traceparent(TRACE, "x1", "4.2"))[1]
