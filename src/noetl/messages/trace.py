"""
Ids of traces and spans (EVT-1): how an execution joins the trace of whoever asked for it.

Ids are derived, so that the header which a task sends and the spans which are exported later
(EVT-6) say the same. The header is `traceparent` of W3C Trace Context.
"""

from functools import lru_cache
from hashlib import sha256

from noetl.late import late

Entity = tuple[str, str]
"""What a span is about: `step`, `iteration`, … and its id."""

_HEX_TRACE = late(r"(?!0{32})[0-9a-f]{32}")
_HEADER = late(
    r"(?!ff)[0-9a-f]{2}-(?P<trace>(?!0{32})[0-9a-f]{32})-(?P<span>(?!0{16})[0-9a-f]{16})"
    r"-[0-9a-f]{2}(?:-.*)?"
)


@lru_cache(256)
def trace_id(known: str) -> str:
    """32 hexadecimal digits for the `trace_id` of the envelope, which may be of any form."""
    if _HEX_TRACE.fullmatch(known):
        return known
    return sha256(f"noetl/{known}".encode()).hexdigest()[:32]


def span_id(execution_id: str, entity: Entity) -> str:
    """16 hexadecimal digits, the same for the same entity of an execution."""
    return sha256(f"noetl/{execution_id}/{entity[0]}/{entity[1]}".encode()).hexdigest()[:16]


def traceparent(known: str, execution_id: str, task_run_id: str) -> str:
    """The header that a task sends: its trace, and itself as the parent."""
    return f"00-{trace_id(known)}-{span_id(execution_id, ('task', task_run_id))}-01"


def trace_in(header: str | None) -> tuple[str | None, str | None]:
    """Trace and parent span that a header names; none where there is no valid one."""
    found = None if header is None else _HEADER.fullmatch(header.strip())
    return (None, None) if found is None else (found["trace"], found["span"])
