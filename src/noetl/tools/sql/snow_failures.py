"""What an error of Snowflake means: its kind, and whether a repeat may help (OUT-4)."""

import re
from typing import Any

from noetl.messages.outcome import Outcome, failed

_REFUSED = re.compile(
    r"incorrect username or password|authentication|password is empty|user is empty|"
    r"jwt token is invalid|account is empty|is not allowed to access|token .*expired",
    re.IGNORECASE,
)
_KINDS = (
    (range(390_100, 390_400), "auth"),
    (range(250_001, 250_010), "connection"),
    (range(251_001, 251_020), "auth"),
    (range(290_400, 290_600), "connection"),
)
"""By the number; what is not here is an answer to the statement."""
_ENDED = frozenset({604, 630})
"""Cancelled, or the statement's own timeout."""
_RETRYABLE_STATES = ("08", "40", "57")


def block_of(
    code: str | None = None,
    sqlstate: str | None = None,
    message: str | None = None,
    rowcount: int | None = None,
    query_id: str | None = None,
) -> dict[str, Any]:
    """OUT-2: always with all fields, so that a policy may ask for any of them."""
    return {
        "code": code,
        "sqlstate": sqlstate,
        "message": message,
        "rowcount": rowcount,
        "query_id": query_id,
    }


def failure_of(fault: Any) -> Outcome:
    """The outcome of a statement or a connection that failed, from the connector's `Error`."""
    number = fault.errno if isinstance(fault.errno, int) and fault.errno > 0 else 0
    state = fault.sqlstate if fault.sqlstate and fault.sqlstate != "n/a" else None
    message = str(fault.raw_msg or fault.msg or fault).strip().partition("\n")[0]
    kind = kind_of(number, message)
    retryable = kind in ("connection", "timeout") or (
        kind == "snowflake" and (state or "").startswith(_RETRYABLE_STATES)
    )
    code = f"{number:06d}" if number else None
    block = block_of(code, state, message, query_id=fault.sfqid)
    return failed(kind, f"Snowflake says {message}", retryable=retryable, block=block)


def kind_of(number: int, message: str) -> str:
    if number in _ENDED:
        return "timeout"
    kind = next((kind for numbers, kind in _KINDS if number in numbers), "snowflake")
    # A login that was refused comes with the number of a connection that failed.
    return "auth" if kind == "connection" and _REFUSED.search(message) else kind
