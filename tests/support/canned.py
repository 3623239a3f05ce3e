"""Tools that give canned answers by the label of the task, and remember how they were called."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from noetl.messages.outcome import Outcome, ok
from noetl.tools.table import Toolbox
from noetl.tools.tool import Tool, ToolCall, Workplace

Answer = (
    Outcome | Callable[[ToolCall[Any]], Outcome] | Callable[[ToolCall[Any]], Awaitable[Outcome]]
)


class Silence:
    """An answer that never comes: the call ends when it is cancelled."""

    def __init__(self) -> None:
        self.cancelled = 0

    async def __call__(self, call: ToolCall[Any]) -> Outcome:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return ok(call.label)


class CannedTools(Toolbox):
    """Every kind there is; what a call gives depends on its label alone."""

    def __init__(self) -> None:
        super().__init__(Path("/nowhere"), {})
        self.answers: dict[str, list[Answer]] = {}
        self.calls: list[ToolCall[Any]] = []
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """A pause that takes no time."""
        self.pauses.append(seconds)
        await asyncio.sleep(0)

    async def call(self, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        """See `Tool.call`."""
        del workplace
        self.calls.append(call)
        given = self.answers.get(call.label)
        answer: Any = ok(call.label) if not given else given.pop(0) if given[1:] else given[0]
        if isinstance(answer, Outcome):
            return answer
        found = answer(call)
        outcome: Outcome = await found if inspect.isawaitable(found) else found
        return outcome

    async def forget(self, scratch: str) -> None:
        """See `Tool.forget`."""

    async def close(self) -> None:
        """See `Tool.close`."""

    def __getitem__(self, kind: str) -> Tool:
        return self

    def __contains__(self, kind: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    @property
    def built(self) -> list[Tool]:
        return [self]
