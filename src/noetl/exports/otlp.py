"""Spans in the JSON of OpenTelemetry's protocol, OTLP over HTTP (EVT-6)."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from yarl import URL

from noetl import __version__
from noetl.errors import ReceiverUnavailable
from noetl.exports.reading import Cut, Envelope
from noetl.exports.spans import Span, Trace
from noetl.messages.trace import span_id, trace_id

PATH = "/v1/traces"
MOST_SPANS = 512
INTERNAL = 1
ERROR = 2
NANOS = 1_000_000
"""Nanoseconds per millisecond."""

_HEAD = msgspec.json.encode(
    {
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "noetl"}}]},
        "scopeSpans": [{"scope": {"name": "noetl", "version": __version__}}],
    }
).removesuffix(b"}]}")


async def spans_of(
    execution_id: str, events: AsyncIterator[tuple[int, Envelope]], cut: Cut
) -> AsyncIterator[bytes]:
    """
    The spans of one execution, as JSON; of those only what ended within the cut.

    `events` begins with the first of the log: a span's start may lie before the cut.
    """
    trace = Trace(execution_id)
    async for at, event in events:
        for span in trace.take(at, event):
            if cut.holds(event["seq"], at):
                yield written(execution_id, span, event["trace_id"])


def request_of(spans: list[bytes]) -> bytes:
    """One request, which is also one line of an OTLP file."""
    return b'{"resourceSpans":[' + _HEAD + b',"spans":[' + b",".join(spans) + b"]}]}]}\n"


def written(execution_id: str, span: Span, trace: str) -> bytes:
    """One span as JSON; ids are hexadecimal and 64-bit numbers are text, as the protocol says."""
    told: dict[str, Any] = {
        "traceId": trace_id(trace),
        "spanId": span_id(execution_id, span.entity),
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": str(span.start * NANOS),
        "endTimeUnixNano": str(span.end * NANOS),
        "attributes": [{"key": key, "value": value_of(v)} for key, v in span.attributes.items()],
        "status": {} if span.error is None else {"code": ERROR, "message": span.error},
    }
    above = span.above if span.parent is None else span_id(execution_id, span.parent)
    if above is not None:
        told["parentSpanId"] = above
    if span.notes:
        told["events"] = [{"timeUnixNano": str(at * NANOS), "name": n} for at, n in span.notes]
    if span.notes_left_out:
        told["droppedEventsCount"] = span.notes_left_out
    if span.links:
        told["links"] = [
            {
                "traceId": trace_id(trace if execution == execution_id else execution),
                "spanId": span_id(execution, entity),
            }
            for execution, entity in span.links
        ]
    return msgspec.json.encode(told)


def value_of(value: Any) -> dict[str, Any]:
    """An attribute's value, under the name of its type."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case str():
            return {"stringValue": value}
    return {"stringValue": msgspec.json.encode(value).decode()}


def traces_url(url: URL) -> URL:
    """Where traces go: the usual path is added to the address of a collector."""
    path = url.path.rstrip("/")
    return url.with_path(path if path.endswith(PATH) else path + PATH, keep_query=True)


def check_answer(url: str, answer: bytes) -> None:
    """A receiver may answer 200 and still have refused some spans."""
    try:
        refused = msgspec.json.decode(answer or b"{}", type=ExportAnswer).partial
    except msgspec.MsgspecError:
        return  # Some receivers answer with a word of their own.
    if refused is not None and int(refused.rejected) > 0:
        raise ReceiverUnavailable(
            f"{url} took a request but refused {refused.rejected} of its spans: "
            f"{refused.message or 'it does not say why'}; look into the receiver's own log"
        )


class PartialSuccess(msgspec.Struct):
    rejected: int | str = msgspec.field(name="rejectedSpans", default=0)
    message: str = msgspec.field(name="errorMessage", default="")


class ExportAnswer(msgspec.Struct):
    partial: PartialSuccess | None = msgspec.field(name="partialSuccess", default=None)
