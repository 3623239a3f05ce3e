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


class ExecutionReport(msgspec.Struct, frozen=True, kw_only=True):
    """The object on standard output."""

    execution_id: str
    status: str
    ctx: dict[str, Any]
    result: Any
    error: dict[str, Any] | None
    steps: list[dict[str, Any]]
    duration_ms: int
    errors_passed: int = 0
    """Errors after which it went on: a policy, or a loop, let them pass (TASK-2)."""
    failures_handled: int = 0
    """Failures of steps that an arc took (NEXT-3)."""


async def report_of(
    execution: Execution, results: ResultStore, duration_ms: int
) -> ExecutionReport:
    return ExecutionReport(
        execution_id=execution.execution_id,
        status=execution.status,
        ctx=await with_values(execution.ctx, results),
        result=await with_values(result_of(execution.leaves), results),
        error=await with_values(execution.error, results),
        steps=steps_of(execution),
        duration_ms=duration_ms,
        errors_passed=execution.errors_passed,
        failures_handled=execution.failures_handled,
    )


def handled_words(errors_passed: int, failures_handled: int) -> list[str]:
    """What went wrong in an execution and did not fail it; nothing where nothing did."""
    words = []
    if failures_handled:
        words.append(f"{failures_handled:,} failure{'s' * (failures_handled != 1)} handled")
    if errors_passed:
        errors = "an error" if errors_passed == 1 else f"{errors_passed:,} errors"
        words.append(f"went on after {errors}")
    return words


def steps_of(execution: Execution) -> list[dict[str, Any]]:
    return [
        {"step": step, "runs": tally.runs, "failed": tally.failed, "status": tally.status}
        for step, tally in execution.tallies.items()
    ]


async def with_values(value: Any, results: ResultStore) -> Any:
    """The value with every reference in it replaced: by what it refers to, or by its fields."""
    try:
        return await ShownValues(results).replaced(value)
    except RecursionError:  # a body of the world, which nobody has looked into before
        return await ShownValues(results, room=0).replaced(value)


class ShownValues:
    """References on their way to be printed: values while there is room, fields after that."""

    def __init__(self, results: ResultStore, room: int = IN_ALL) -> None:
        self._results = results
        self._room = room

    async def replaced(self, value: Any) -> Any:
        if isinstance(value, Reference):
            if value.sealed is not None:
                return MASK  # KEY-2
            found = await self._behind(value)
            return {REF: value.fields()} if found is value else await self.replaced(found)
        if isinstance(value, dict):
            return {key: await self.replaced(below) for key, below in value.items()}
        if isinstance(value, list | tuple):
            return [await self.replaced(below) for below in value]
        return value

    async def _behind(self, reference: Reference) -> Any:
        """The stored value where it is small enough; the reference where it is not, or lost."""
        try:
            if not self._fits(reference.size):
                return reference
            value = await self._results.fetch(reference)
            if not in_chunks(reference):
                return value
            chunks = chunks_of(value)
            if sum(chunk.size for chunk in chunks) > min(LARGEST, self._room):
                return reference
            parts = [await self._behind(chunk) for chunk in chunks]
            return reference if any(type(part) is Reference for part in parts) else joined(parts)
        except BodyLost:
            return reference

    def _fits(self, size: int) -> bool:
        if size > min(LARGEST, self._room):
            return False
        self._room -= size
        return True
