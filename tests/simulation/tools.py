"""Tools that do as their task says, in simulated time, and a ledger of what they did."""

import asyncio
from pathlib import Path
from random import Random
from typing import Any

from tests.simulation.audit import Auditor
from tests.simulation.loop import NODE

from noetl.messages.outcome import Outcome, failed, ok
from noetl.tools.bounds import Bounds
from noetl.tools.plugins import Plugins
from noetl.tools.table import TOOLS, Toolbox
from noetl.tools.tool import Tool, ToolCall, Workplace


class ScriptedTool:
    """Stands for whatever has effects: the body of the call says what becomes of it."""

    def __init__(self, auditor: Auditor, chance: Random) -> None:
        self._auditor = auditor
        self._chance = chance

    async def call(self, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        body = call.inputs.body
        command = workplace._command  # type: ignore[attr-defined]
        node = NODE.get()
        assert node is not None, "tools run on workers"
        self._auditor.effect(call, command, node.name)
        if body["seconds"]:
            await asyncio.sleep(body["seconds"] * (0.5 + self._chance.random()))
        else:
            await asyncio.sleep(0)
        if self._chance.random() < body.get("fails", 0.0):
            return failed("http", "no luck", retryable=self._chance.random() < 0.7)
        size = body["size"]
        return ok("x" * size if size > 30 else self._chance.randint(0, 2))

    async def forget(self, scratch: str) -> None:
        """Nothing is kept."""

    async def close(self) -> None:
        """Nothing is open."""


class SimulatedTools(Toolbox):
    """The real tools but for those that reach out of the process."""

    def __init__(self, auditor: Auditor, chance: Random, plugins: Plugins) -> None:
        super().__init__(Path("/nowhere"), TOOLS, plugins, Bounds())
        tool: Tool = ScriptedTool(auditor, chance)
        self._built["http"] = tool
