"""The `noop` tool: it does nothing, so that a policy can decide (SCOPE-3)."""

from typing import Any

from noetl.messages.outcome import Outcome, ok
from noetl.tools.frame import FramedTool
from noetl.tools.tool import ToolCall, Workplace


class NoopTool(FramedTool):
    """A pipeline passes `_prev` through a `noop` by itself; this is for direct calls."""

    async def _run(self, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        del call, workplace
        return ok()
