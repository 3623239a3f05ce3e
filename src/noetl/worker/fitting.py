"""What a worker keeps out of the log, and what it gets from there (EVT-4, RES)."""

from collections.abc import Awaitable, Callable
from typing import Any

from noetl.control.deciding import hint_of
from noetl.control.dispatch import Command
from noetl.messages.codec import encode, reference_to
from noetl.messages.reference import Reference
from noetl.messages.size import surely_fits
from noetl.playbook.plan import Plan
from noetl.ports.bodies import Bodies
from noetl.ports.result_store import ResultStore

READABLE = 1000
"""Characters of an error's message that stay in the log when the error is too large for it."""


class Fitting:
    """The large values of one part: moved out before a report, loaded when a template asks."""

    def __init__(
        self,
        command: Command,
        plan: Plan,
        results: ResultStore,
        bodies: dict[str, Any],
        unseal: Callable[[Reference], Awaitable[Any]],
    ) -> None:
        self._command = command
        self._largest = plan.limits.max_payload_bytes
        self._always = plan.executor.reference_first
        self._results = results
        self._unseal = unseal
        self._loader: Bodies | None = None
        self._waiting: list[bytes] = []
        self.bodies = bodies

    def fit(self, values: dict[str, Any]) -> dict[str, Any]:
        """The mapping, its largest values by reference until the rest fits the log."""
        if self._always and values.get("result") is not None and "status" in values:
            return self._moved(values, encode(values["result"]), "result")
        if surely_fits(values, self._largest):
            return values
        bodies = {key: encode(value) for key, value in values.items()}
        size = sum(map(len, bodies.values()))
        for key in sorted(bodies, key=lambda key: len(bodies[key]), reverse=True):
            if size <= self._largest:
                break
            values = self._moved(values, bodies[key], key)
            size -= len(bodies[key])
        return values

    def _moved(self, values: dict[str, Any], body: bytes, key: str) -> dict[str, Any]:
        value = values[key]
        if isinstance(value, Reference) and value.sealed is None:
            return values
        if key == "error" and "status" in values and isinstance(value, dict):
            return {**values, key: self._shortened(value)}
        command = self._command
        reference = reference_to(command.store, command.execution_id, body, hint_of(value))
        self._waiting.append(body)
        self.bodies[reference.key] = value
        return {**values, key: reference}

    def _shortened(self, error: dict[str, Any]) -> dict[str, Any]:
        """An error keeps its kind and a message that can be read; what else is long moves out."""
        kept = dict(error)
        for key, value in error.items():
            if key == "message" and len(value) > READABLE:
                kept[key] = f"{value[:READABLE]}… ({len(value)} characters)"
            elif key not in ("kind", "message", "retryable"):
                body = encode(value)
                if len(body) > READABLE:
                    kept = self._moved(kept, body, key)
        return kept

    def take_bodies(self) -> list[bytes]:
        """What must be durable before the next report, which refers to it."""
        waiting, self._waiting = self._waiting, []
        return waiting

    async def load(self, reference: Reference) -> Any:
        """The value behind a reference, for templates and tools."""
        if reference.key in self.bodies:
            return self.bodies[reference.key]
        if reference.sealed is not None:
            self.bodies[reference.key] = await self._unseal(reference)
        else:
            self._loader = self._loader or Bodies(self._results)
            self.bodies[reference.key] = await self._loader.load(reference)
        return self.bodies[reference.key]

    async def resolved(self, value: Any) -> Any:
        """The value with every reference in it replaced by what it refers to (RES-2)."""
        if isinstance(value, Reference):
            return await self.resolved(await self.load(value))
        if isinstance(value, dict):
            return {key: await self.resolved(below) for key, below in value.items()}
        if isinstance(value, list):
            return [await self.resolved(below) for below in value]
        return value
