"""The `noop` tool: it does nothing, so that a policy can decide (SCOPE-3)."""

from typing import Any

from noetl.messages.outcome import Outcome, ok
from noetl.tools.tool import ToolCall, Workplace


class NoopTool:
    """A pipeline passes `_prev` through a `noop` by itself; this is for direct calls."""

    async def call(self, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        del call, workplace
        return ok()

    async def forget(self, scratch: str) -> None:
        """Keeps nothing."""

    async def close(self) -> None:
        """Keeps nothing."""
