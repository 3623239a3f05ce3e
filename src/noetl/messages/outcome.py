"""The tool's one answer (OUT-1): ok with a result, or an error of a known kind."""

from typing import Any, Literal

import msgspec

ERROR_KINDS = [
    "template",
    "input",
    "auth",
    "connection",
    "timeout",
    "http",
    "decode",
    "postgres",
    "duckdb",
    "snowflake",
    "python",
    "exit",
    "container",
    "quantum",
    "object",
    "playbook",
    "policy",
    "loop",
    "limit",
    "ctx_conflict",
    "retry_exhausted",
    "result",
    "not_found",
    "cancelled",
    "worker_lost",
    "internal",
]
"""OUT-4; a plugin may add its own."""


class CacheHit(msgspec.Struct, frozen=True):
    """An outcome of another task run, as the log had it without its `meta` (CACHE-1)."""

    key: str
    execution_id: str
    at: int
    """When it was kept (ms)."""
    outcome: dict[str, Any]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """
    What a call came to. The worker adds `meta` when it records it.

    `error` holds at least kind, message and retryable; `block` is the kind's own part (OUT-2)
    and stands in the recorded outcome under the kind's block name.
    """

    status: Literal["ok", "error"]
    result: Any = None
    error: dict[str, Any] | None = None
    block: dict[str, Any] | None = None
    block_name: str | None = None
    """Where `block` stands, if not under the name that the kind declares."""
    lent: dict[str, Any] | None = None
    """Which task of the workbook ran, for `outcome.workbook`."""
    inputs: dict[str, Any] = {}
    """Of an error: what the tool was given, as the log shows it to people."""
    writes: dict[str, Any] | None = None
    """What a nested loop's reducers came to (LOOP-5): written to ctx with the task."""
    hit: CacheHit | None = None
    """Of one that was kept (CACHE-1): what the log had of it."""
    keep: dict[str, str] | None = None
    """Of one that may be kept: as which task, under which key."""
    secret: bool = False
    """Of a task with a cache: whether a secret was found in it, so that it is not kept."""
    passed: list[tuple[str, Any]] = []
    """What a nested loop wrote for the loop around it, which reduces it in the same way."""


def ok(result: Any = None, *, block: dict[str, Any] | None = None) -> Outcome:
    """The call succeeded."""
    return Outcome(status="ok", result=result, block=block)


def failed(
    kind: str,
    message: str,
    *,
    retryable: bool = False,
    block: dict[str, Any] | None = None,
    result: Any = None,
    **more: Any,
) -> Outcome:
    """The call failed; `more` are further fields of the error, such as `cause`."""
    error = make_error(kind, message, retryable=retryable, **more)
    return Outcome(status="error", error=error, block=block, result=result)


def make_error(kind: str, message: str, *, retryable: bool = False, **more: Any) -> dict[str, Any]:
    """An error as the log has it: every one is made here, so that none lacks a field (OUT-1)."""
    return {"kind": kind, "message": message, "retryable": retryable, **more}


def completed(given: Any) -> dict[str, Any]:
    """What a tool gave as its error, with all that OUT-1 asks: plugins may forget some of it."""
    error = given if isinstance(given, dict) else {"message": str(given or "it gave no reason")}
    return make_error("internal", "it gave no reason") | error
