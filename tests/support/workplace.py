"""A workplace for tools under test: bodies in memory, lines in a list, credentials in a table."""

import asyncio
from typing import Any

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.errors import CredentialMissing, ResultsUnavailable
from noetl.messages.reference import Reference, secret
from noetl.ports.result_store import BodyWriter, ResultStore
from noetl.tools.tool import ToolCall


class KeptBodies(ResultStore):
    """The store in memory; `unfinished` counts bodies begun and neither kept nor dropped."""

    def __init__(self) -> None:
        objects = MemoryObjectStore()
        super().__init__(objects)
        self.kept = objects.kept
        self.unfinished = 0
        self.largest_piece = 0
        self.taken = 0
        """Bytes of all bodies so far."""
        self.full = False
        """Whether the disk is full."""

    def open(self, execution_id: str) -> BodyWriter:
        self.unfinished += 1
        return _CountedWriter(self, execution_id)

    async def keep(self, *body: Any, **more: Any) -> Reference:
        if self.full:
            raise ResultsUnavailable("a result cannot be stored: No space left on device")
        return await super().keep(*body, **more)

    def stored(self, execution_id: str, body: bytes) -> Reference:
        """For tests without an event loop."""
        return asyncio.run(self.put(execution_id, body))

    def value(self, reference: Reference) -> Any:
        """For tests without an event loop."""
        return asyncio.run(self.fetch(reference))


class _CountedWriter(BodyWriter):
    def __init__(self, store: KeptBodies, execution_id: str) -> None:
        super().__init__(store, execution_id)
        self._counts = store

    def write(self, piece: bytes) -> None:
        if self._counts.full:
            raise ResultsUnavailable("a result cannot be stored: No space left on device")
        self._counts.taken += len(piece)
        self._counts.largest_piece = max(self._counts.largest_piece, len(piece))
        super().write(piece)

    async def finish(
        self, schema_hint: str | None = None, *, patience: float | None = None
    ) -> Reference:
        self._counts.unfinished -= 1
        return await super().finish(schema_hint, patience=patience)

    async def discard(self) -> None:
        self._counts.unfinished -= 1
        await super().discard()


class BenchPlace:
    """What a tool may ask of its worker, without a worker."""

    def __init__(self, **credentials: dict[str, Any]) -> None:
        self.results = KeptBodies()
        self.lines: list[tuple[str, str]] = []
        self._credentials = credentials

    def log(self, call: ToolCall[Any], stream: str, text: str) -> None:  # noqa: ARG002
        self.lines.append((stream, text))

    async def unlock(self, name: str) -> dict[str, Any]:
        if name not in self._credentials:
            raise CredentialMissing(f"no credential '{name}'; add it to the keychain")
        return self._credentials[name]

    async def secret(self, provider: str, name: str, auth: str | None) -> Reference:
        del auth
        if provider != "store" or name not in self._credentials:
            raise CredentialMissing(f"{provider} has no secret '{name}'")
        return secret(name, "sealed")

    async def child(
        self,
        call: ToolCall[Any],
        *,
        path: str,
        version: str | None,
        payload: dict[str, Any],
        wait: bool,
    ) -> dict[str, Any]:
        raise AssertionError(f"{call.label} asks for {path} {version} {payload} {wait}")


def call_of(inputs: Any, **more: Any) -> ToolCall[Any]:
    """A call with made-up ids; `more` are further fields of Call."""
    named = {"execution_id": "e1", "step": "s", "label": "t", "task_run_id": "r1", "scratch": "s1"}
    return ToolCall(inputs=inputs, **{**named, **more})
