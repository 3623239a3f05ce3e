"""What an error of PostgreSQL means: its kind, and whether a repeat may help (OUT-4)."""

import re
from typing import Any

import psycopg

from noetl.messages.outcome import Outcome, failed

_RETRYABLE = ("08", "40", "53", "55P03", "57P")
"""Lost connections, conflicts, exhausted resources, locks not available, shutdown."""
_KINDS = (
    ("08P01", "input"),  # what was sent breaks the protocol: no repeat will fix it
    ("08", "connection"),
    ("28", "auth"),
    ("57014", "timeout"),
    ("", "postgres"),
)
"""By the beginning of the SQLSTATE; the first that fits."""
_REFUSED_USER = re.compile(
    r"password authentication failed|no password supplied|no pg_hba.conf entry"
    r"|authentication failed|role \".*\" does not exist"
)
_NO_TLS = re.compile(r"does not support SSL|certificate")
"""A server without TLS, or with a certificate that nobody vouches for, stays so."""
_MISSING_DATABASE = re.compile(r"database \".*\" does not exist")


def block_of(sqlstate: str | None = None, message: str | None = None) -> dict[str, Any]:
    return {"code": sqlstate, "sqlstate": sqlstate, "message": message, "rowcount": None}


def failure_of(fault: psycopg.Error) -> Outcome:
    """The outcome of a statement or a connection that failed."""
    sqlstate = fault.sqlstate or _state_in_words(fault)
    if sqlstate is None:
        return _without_state(fault)
    kind = next(kind for start, kind in _KINDS if sqlstate.startswith(start))
    retryable = kind == "timeout" or (kind != "input" and sqlstate.startswith(_RETRYABLE))
    message = fault.diag.message_primary or _first_line(fault)
    hint = f"; {fault.diag.message_hint}" if fault.diag.message_hint else ""
    says = f"PostgreSQL says {sqlstate}: {message}{_place(fault)}{hint}"
    return failed(kind, says, retryable=retryable, block=block_of(sqlstate, message))


def _state_in_words(fault: psycopg.Error) -> str | None:
    """A refused connection carries its reason as text only."""
    if not isinstance(fault, psycopg.OperationalError):
        return None
    if _REFUSED_USER.search(str(fault)):
        return "28000"
    return "3D000" if _MISSING_DATABASE.search(str(fault)) else None


def _without_state(fault: psycopg.Error) -> Outcome:
    """The driver's own errors: either the way to the server, or what was to be sent."""
    message = _first_line(fault)
    if isinstance(fault, psycopg.errors.ConnectionTimeout):
        says = f"no connection to PostgreSQL in time (connect timeout): {message}"
        return failed("timeout", says, retryable=True, block=block_of(None, message))
    if isinstance(fault, psycopg.OperationalError | psycopg.InterfaceError):
        says = f"no connection to PostgreSQL: {message}"
        retryable = not _NO_TLS.search(str(fault))
        return failed("connection", says, retryable=retryable, block=block_of(None, message))
    says = f"the command cannot be sent: {message}"
    return failed("input", says, block=block_of(None, message))


def _first_line(fault: psycopg.Error) -> str:
    return str(fault).strip().partition("\n")[0]


def _place(fault: psycopg.Error) -> str:
    position = fault.diag.statement_position
    return f" (at character {position})" if position else ""
