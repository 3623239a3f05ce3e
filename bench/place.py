"""Where a tool runs while it is measured: a store, and one credential."""

from typing import Any

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.messages.reference import Reference
from noetl.ports.result_store import ResultStore
from noetl.tools.tool import ToolCall


class Place:
    """A workplace that keeps bodies and drops lines."""

    def __init__(
        self, results: ResultStore | None = None, credential: dict[str, Any] | None = None
    ) -> None:
        self.results = results or ResultStore(MemoryObjectStore())
        self._credential = credential or {}

    def log(self, call: ToolCall[Any], stream: str, text: str) -> None:
        """Nobody reads it here."""

    async def unlock(self, name: str) -> dict[str, Any]:
        assert name
        return self._credential

    async def secret(self, provider: str, name: str, auth: str | None) -> Reference:
        raise AssertionError(f"asked for a secret: {provider} {name} {auth}")

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
    named = {"execution_id": "e", "step": "s", "label": "t", "task_run_id": "r", "scratch": "s"}
    return ToolCall(inputs=inputs, **{**named, **more})
