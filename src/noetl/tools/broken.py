"""What stands for a tool that cannot be made."""

from typing import Any

from noetl.messages.outcome import Outcome, failed
from noetl.tools.frame import FramedTool
from noetl.tools.tool import ToolCall, Workplace


class BrokenTool(FramedTool):
    """Fails every call, so that a policy learns why."""

    def __init__(self, why: str, block: dict[str, Any] | None = None) -> None:
        self._why = why
        self._empty = block

    async def _run(self, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        del call, workplace
        return failed("not_found", self._why, block=self._empty)
