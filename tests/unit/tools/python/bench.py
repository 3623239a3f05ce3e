"""A python tool on a bench: calls one after the other or all at once, and ends everything."""

import asyncio
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.code import PythonInputs
from noetl.messages.outcome import Outcome
from noetl.playbook.model import Timeout
from noetl.tools.bounds import Namespaces
from noetl.tools.python.tool import PythonTool

T = TypeVar("T")


class Bench:
    """
    One tool, one event loop, one workplace. Children have no namespaces unless a test asks for
    them: with them the kernel ends all that code starts, without them the tool has to.
    """

    def __init__(
        self,
        home: Path,
        children: int = 2,
        python: str = sys.executable,
        namespaces: Namespaces = "off",
    ) -> None:
        self._runner = asyncio.Runner()
        self.tool = PythonTool(home, children=children, python=python, namespaces=namespaces)
        self.place = BenchPlace()

    @property
    def lines(self) -> list[tuple[str, str]]:
        return self.place.lines

    def call(
        self,
        code: str,
        *,
        libs: list[str] | None = None,
        total: float | None = None,
        memory: Any = None,
        execution: str = "e1",
        max_inline: int = 1 << 40,
        shared: bool = False,
        **args: Any,
    ) -> Coroutine[Any, Any, Outcome]:
        inputs = PythonInputs(code=code, args=args, libs=libs or [])
        call = call_of(
            inputs,
            execution_id=execution,
            timeout=Timeout(total=total),
            max_inline=max_inline,
            shared=shared,
            resources={} if memory is None else {"memory": memory},
        )
        return self.tool.call(call, self.place)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def run(self, code: str, **more: Any) -> Outcome:
        """One call, waited for."""
        return self.wait(self.call(code, **more))

    def result(self, code: str, **more: Any) -> Any:
        """The result of a call that must succeed."""
        outcome = self.run(code, **more)
        assert (outcome.status, outcome.error) == ("ok", None)
        return outcome.result

    def error(self, code: str, **more: Any) -> dict[str, Any]:
        """The error of a call that must fail."""
        outcome = self.run(code, **more)
        assert outcome.status == "error"
        assert outcome.error is not None
        return outcome.error

    def close(self) -> None:
        self.wait(self.tool.close())
        self._runner.close()


def gone(pid: int) -> bool:
    """Wait until a process runs no more; a dead one that nobody has waited for counts."""
    while True:
        try:
            state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        os.sched_yield()
