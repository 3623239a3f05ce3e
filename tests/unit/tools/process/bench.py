"""Script and shell on a bench: one call, waited for, with everything ended afterwards."""

import asyncio
import signal
from pathlib import Path
from typing import Any

from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.code import ScriptInputs, ShellInputs
from noetl.kinds.kind import Inputs
from noetl.messages.outcome import Outcome
from noetl.playbook.model import Timeout
from noetl.tools.process.tool import ProcessTool, ScriptTool, ShellTool

TOOLS: dict[type[Inputs], type[ScriptTool] | type[ShellTool]] = {
    ScriptInputs: ScriptTool,
    ShellInputs: ShellTool,
}


class Bench:
    """What calls leave behind: lines and bodies."""

    def __init__(self) -> None:
        self.place = BenchPlace()

    def run(
        self,
        inputs: Inputs,
        *,
        total: float | None = None,
        tool: ProcessTool | None = None,
        **more: Any,
    ) -> Outcome:
        async def call() -> Outcome:
            used = tool or TOOLS[type(inputs)]()
            try:
                asked = call_of(inputs, timeout=Timeout(total=total), **more)
                return await used.call(asked, self.place)
            finally:
                await used.close()

        return asyncio.run(call())

    def shell(self, command: str, **more: Any) -> Outcome:
        given = {name: more.pop(name) for name in ("stdin", "env") if name in more}
        return self.run(ShellInputs(command=command, **given), **more)

    def stdout(self, command: str, **more: Any) -> str:
        """What a command prints that must succeed."""
        outcome = self.shell(command, **more)
        assert (outcome.status, outcome.error) == ("ok", None)
        return str(outcome.result["stdout"])

    def error(self, inputs: Inputs, **more: Any) -> dict[str, Any]:
        """The error of a call that must fail."""
        outcome = self.run(inputs, **more)
        assert outcome.error is not None, outcome
        return outcome.error


KILLED = 1 << (signal.SIGKILL - 1)


def running_with(word: str) -> list[int]:
    """
    The processes that have this word on their command line, but for those that were killed: on a
    busy machine they may still have to be given a moment in which to be gone.
    """
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if word.encode() in words and not pending(entry) & KILLED:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def pending(process: Path) -> int:
    """The signals that it was sent and has not had yet."""
    told = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    return int(told["SigPnd"], 16) | int(told["ShdPnd"], 16)
