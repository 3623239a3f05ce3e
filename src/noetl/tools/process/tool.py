"""Runs programs for tasks of the kinds `script` and `shell` (TOOL-0)."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from noetl.messages.outcome import Outcome, failed
from noetl.tools.bounds import WITHOUT, Namespaces
from noetl.tools.process.capture import LONGEST, Streams
from noetl.tools.process.folders import Folders
from noetl.tools.process.orders import script_order, shell_order
from noetl.tools.process.outcomes import NOT_RUN, cut_short, outcome_of
from noetl.tools.process.running import ProcessSpec, RunningCommand
from noetl.tools.tool import ToolCall, Workplace
from noetl.tools.unbroken import Stop, UnbrokenTool, ends_in_time

GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""

OrderOf = Callable[[ToolCall[Any], str], ProcessSpec]


class ProcessTool(UnbrokenTool):
    """
    Each call has a process and an empty folder of its own; both are gone when it ends, and a
    cancelled call ends when they are.
    """

    empty = NOT_RUN

    def __init__(
        self,
        kind: str,
        order_of: OrderOf,
        *,
        grace: float = GRACE,
        longest: int = LONGEST,
        namespaces: Namespaces = "auto",
        private: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self._folders = Folders(kind)
        self._order_of = order_of
        self._grace = grace
        self._longest = longest
        self._kept: dict[str, Any] = {"namespaces": namespaces, "private": list(private)}
        self._warned = False

    async def close(self) -> None:
        await super().close()
        self._folders.close()

    def _failure(self, call: ToolCall[Any], fault: Exception) -> Outcome | None:
        del call
        if not isinstance(fault, OSError):
            return None
        return failed("exit", f"the command cannot be started: {fault}", retryable=True)

    async def _begun(self, call: ToolCall[Any], workplace: Workplace, stop: Stop) -> Outcome:
        folder = self._folders.new()
        try:
            order = self._order_of(call, folder)
            order = msgspec.structs.replace(order, **self._kept)
            return await self._watch(order, folder, call, workplace, stop)
        finally:
            await asyncio.to_thread(remove, Path(folder))

    async def _watch(
        self,
        order: ProcessSpec,
        folder: str,
        call: ToolCall[Any],
        workplace: Workplace,
        stop: Stop,
    ) -> Outcome:
        streams, total = Streams(call, workplace, self._longest), call.timeout.total
        try:
            running = RunningCommand(order, folder, streams.take)
            late = not await ends_in_time(running.ended, stop, total)
            if late:
                await self._end(running)
            streams.end()
            if running.refused is not None:
                raise running.refused
            printed = await streams.finish()
            ended = running.ended.result()
            if ended.free and not self._warned:
                self._warned = True
                workplace.log(call, "system", WITHOUT)
            if late:
                return cut_short(None if stop.done() else total, ended, printed)
            return outcome_of(ended, printed, order.words[0])
        finally:
            await streams.discard()

    async def _end(self, running: RunningCommand) -> None:
        running.terminate()
        await asyncio.wait({running.ended}, timeout=self._grace)
        running.kill()
        await running.ended


class ScriptTool(ProcessTool):
    """The kind `script`."""

    def __init__(self, **more: Any) -> None:
        super().__init__("script", script_order, **more)


class ShellTool(ProcessTool):
    """The kind `shell`."""

    def __init__(self, **more: Any) -> None:
        super().__init__("shell", shell_order, **more)


def remove(folder: Path) -> None:
    """The working folder, and what was written beside it for this call."""
    shutil.rmtree(folder, ignore_errors=True)
    for file in folder.parent.glob(f"{folder.name}.*"):
        file.unlink(missing_ok=True)
