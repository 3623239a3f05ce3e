"""What `run` and `resume` say at the end: the object of `--json`, and its values in short."""

from collections.abc import Callable
from typing import Any

import msgspec

from noetl.control.ending import result_of
from noetl.control.execution import Execution
from noetl.errors import BodyLost
from noetl.messages.codec import REF
from noetl.messages.reference import Reference
from noetl.ports.bodies import chunks_of, in_chunks, joined
from noetl.ports.result_store import ResultStore

LARGEST = 1024 * 1024
"""Bytes of a stored value that is still printed; a larger one is shown as its reference."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The object on standard output."""

    execution_id: str
    status: str
    ctx: dict[str, Any]
    result: Any
    error: dict[str, Any] | None
    steps: list[dict[str, Any]]
    duration_ms: int


def report_of(execution: Execution, results: ResultStore, duration_ms: int) -> Report:
    def shown(value: Any) -> Any:
        return with_values(value, results)

    return Report(
        execution_id=execution.execution_id,
        status=execution.status,
        ctx=shown(execution.ctx),
        result=shown(result_of(execution.leaves)),
        error=shown(execution.error),
        steps=steps_of(execution),
        duration_ms=duration_ms,
    )


def steps_of(execution: Execution) -> list[dict[str, Any]]:
    return [
        {"step": step, "runs": tally.runs, "failed": tally.failed, "status": tally.status}
        for step, tally in execution.tallies.items()
    ]


def with_values(value: Any, results: ResultStore) -> Any:
    """The value with every reference in it replaced: by what it refers to, or by its fields."""
    return replaced(value, lambda reference: value_behind(reference, results))


def replaced(value: Any, change: Callable[[Reference], Any]) -> Any:
    if isinstance(value, Reference):
        return change(value)
    if isinstance(value, dict):
        return {key: replaced(below, change) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [replaced(below, change) for below in value]
    return value


def value_behind(reference: Reference, results: ResultStore) -> Any:
    """The stored value where it is small enough to print; a lost one stays a reference."""
    as_reference = {REF: reference.fields()}
    if reference.size > LARGEST:
        return as_reference
    try:
        value = results.fetch_now(reference)
        if not in_chunks(reference):
            return with_values(value, results)
        chunks = chunks_of(value)
        if sum(chunk.size for chunk in chunks) > LARGEST:
            return as_reference
        return joined([results.fetch_now(chunk) for chunk in chunks])
    except BodyLost:
        return as_reference
