"""What an execution came to: the object of `run --json`, with the values behind references."""

from typing import Any

import msgspec

from noetl.control.ending import result_of
from noetl.control.execution import Execution
from noetl.errors import BodyLost
from noetl.masking import MASK
from noetl.messages.codec import REF
from noetl.messages.reference import Reference
from noetl.messages.references import chunks_of, in_chunks, joined
from noetl.ports.result_store import ResultStore

LARGEST = 1024 * 1024
"""Bytes of a stored value that is still printed; a larger one is shown as its reference."""
IN_ALL = 16 * LARGEST
"""Bytes of stored values that are printed together."""


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
    return Shown(results).replaced(value)


class Shown:
    """References on their way to be printed: values while there is room, fields after that."""

    def __init__(self, results: ResultStore) -> None:
        self._results = results
        self._room = IN_ALL

    def replaced(self, value: Any) -> Any:
        if isinstance(value, Reference):
            if value.sealed is not None:
                return MASK  # KEY-2
            found = self._behind(value)
            return {REF: value.fields()} if found is value else self.replaced(found)
        if isinstance(value, dict):
            return {key: self.replaced(below) for key, below in value.items()}
        if isinstance(value, list | tuple):
            return [self.replaced(below) for below in value]
        return value

    def _behind(self, reference: Reference) -> Any:
        """The stored value where it is small enough; the reference where it is not, or lost."""
        try:
            if not self._fits(reference.size):
                return reference
            value = self._results.fetch_now(reference)
            if not in_chunks(reference):
                return value
            chunks = chunks_of(value)
            if sum(chunk.size for chunk in chunks) > min(LARGEST, self._room):
                return reference
            parts = [self._behind(chunk) for chunk in chunks]
            return reference if any(type(part) is Reference for part in parts) else joined(parts)
        except BodyLost:
            return reference

    def _fits(self, size: int) -> bool:
        if size > min(LARGEST, self._room):
            return False
        self._room -= size
        return True
