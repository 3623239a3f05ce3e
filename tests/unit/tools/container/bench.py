"""The container tool on a bench: one call, waited for, on a podman with one image."""

import asyncio
from typing import Any

from tests.support.podman import Podman
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.code import ContainerInputs
from noetl.messages.outcome import Outcome
from noetl.playbook.model import Timeout
from noetl.tools.container.tool import ContainerTool

INPUTS = frozenset(ContainerInputs.__struct_fields__)


class Bench:
    """What calls leave behind: lines, bodies, and no container."""

    def __init__(self, podman: Podman) -> None:
        self.podman = podman
        self.place = BenchPlace()

    def tool(self, **more: Any) -> ContainerTool:
        return ContainerTool(self.podman.environment, **{"grace": 1, **more})

    def run(self, command: Any = None, *, total: float | None = None, **more: Any) -> Outcome:
        """Inputs and further fields of the call by their names."""
        given = {name: more.pop(name) for name in list(more) if name in INPUTS}
        tool = more.pop("tool", None) or self.tool()

        async def call() -> Outcome:
            inputs = ContainerInputs(**{"image": self.podman.image, "command": command, **given})
            try:
                asked = call_of(inputs, timeout=Timeout(total=total), **more)
                return await tool.call(asked, self.place)
            finally:
                await tool.close()

        return asyncio.run(call())

    def stdout(self, command: Any = None, **more: Any) -> str:
        """What a container prints that must succeed."""
        outcome = self.run(command, **more)
        assert (outcome.status, outcome.error) == ("ok", None)
        return str(outcome.result["stdout"])

    def error(self, command: Any = None, **more: Any) -> dict[str, Any]:
        """The error of a call that must fail."""
        outcome = self.run(command, **more)
        assert outcome.error is not None, outcome
        return outcome.error
