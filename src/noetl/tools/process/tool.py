"""Runs programs for tasks of the kinds `script` and `shell` (TOOL-0)."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from noetl.messages.outcome import Outcome, failed
from noetl.tools.bounds import WITHOUT, Namespaces
from noetl.tools.process.capture import LONGEST, Capture
from noetl.tools.process.folders import Folders
from noetl.tools.process.orders import script_order, shell_order
from noetl.tools.process.outcomes import NOT_RUN, CommandOutput, cut_short, outcome_of
from noetl.tools.process.output import Output
from noetl.tools.process.running import STDOUT, RunningCommand
from noetl.tools.process.start import ProcessSpec
from noetl.tools.refusal import Refusal, unforeseen
from noetl.tools.tool import ToolCall, Workplace
from noetl.tools.unbroken import Stop, Unbroken

GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""

OrderOf = Callable[[ToolCall[Any], str], ProcessSpec]


class ProcessTool:
    """
    Each call has a process and an empty folder of its own; both are gone when it ends, and a
    cancelled call ends when they are.
    """

    keeps_time = True

    def __init__(
        self,
        kind: str,
        order_of: OrderOf,
        *,
        grace: float = GRACE,
        longest: int = LONGEST,
        namespaces: Namespaces = "auto",
    ) -> None:
        self._folders = Folders(kind)
        self._order_of = order_of
        self._grace = grace
        self._longest = longest
        self._namespaces = namespaces
        self._warned = False
        self._work = Unbroken()

    async def call(self, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        return await self._work.run(lambda stop: self._run(call, workplace, stop))

    async def forget(self, scratch: str) -> None:
        """Nothing outlives a call."""

    async def close(self) -> None:
        """End what still runs."""
        await self._work.close()
        self._folders.close()

    async def _run(self, call: ToolCall[Any], workplace: Workplace, stop: Stop) -> Outcome:
        folder = None
        try:
            folder = self._folders.new()
            order = self._order_of(call, folder)
            order = msgspec.structs.replace(order, namespaces=self._namespaces)
            outcome = await self._watch(order, folder, call, workplace, stop)
        except Refusal as refusal:
            outcome = refusal.outcome
        except OSError as fault:
            outcome = failed("exit", f"the command cannot be started: {fault}", retryable=True)
        except Exception as fault:
            outcome = unforeseen(fault)
        finally:
            if folder is not None:
                await asyncio.to_thread(remove, Path(folder))
        return outcome if outcome.block else msgspec.structs.replace(outcome, block=NOT_RUN)

    async def _watch(
        self,
        order: ProcessSpec,
        folder: str,
        call: ToolCall[Any],
        workplace: Workplace,
        stop: Stop,
    ) -> Outcome:
        """Run it to its end; what a stopped call comes to nobody reads."""
        lines = Output(lambda stream, text: workplace.log(call, stream, text))
        out = Capture("stdout", call, workplace.results, longest=self._longest)
        err = Capture("stderr", call, workplace.results, longest=self._longest)

        def take(stream: int, piece: bytes) -> None:
            lines.written(stream, piece)
            (out if stream == STDOUT else err).feed(piece)

        try:
            running = RunningCommand(order, folder, take)
            total = call.timeout.total
            either: set[asyncio.Future[Any]] = {running.ended, stop}
            await asyncio.wait(either, timeout=total, return_when=asyncio.FIRST_COMPLETED)
            late = not running.ended.done()
            if late:
                await self._end(running)
            lines.end()
            if running.refused is not None:
                raise running.refused
            printed = CommandOutput(
                await out.finish(parse=True), await err.finish(parse=False), err.last_line()
            )
            ended = running.ended.result()
            if ended.free and not self._warned:
                self._warned = True
                workplace.log(call, "system", WITHOUT)
            if late:
                return cut_short(None if stop.done() else total, ended, printed)
            return outcome_of(ended, printed, order.words[0])
        finally:
            await out.discard()
            await err.discard()

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
