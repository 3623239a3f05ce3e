"""The `python` kind: code of a playbook, run in a child process (TOOL-3)."""

import asyncio
import marshal
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from noetl.errors import LogUnavailable
from noetl.kinds.code import PythonInputs
from noetl.masking import KNOWN
from noetl.messages.clipping import beginning
from noetl.messages.outcome import Outcome, failed, ok
from noetl.tools.bounds import DEMANDED, WITHOUT, Namespaces, cpu_seconds
from noetl.tools.frame import FramedTool
from noetl.tools.process.inside.frames import AGAIN, FAILED_WITH_STRAYS, LAST
from noetl.tools.process.inside.namespaces import UNCONFINED
from noetl.tools.process.output import Output
from noetl.tools.python.child import PURE, ChildAnswer, PythonChild
from noetl.tools.python.children import Key, PythonChildren
from noetl.tools.python.early import hidden_places
from noetl.tools.python.libs import Libs
from noetl.tools.refusal import Refusal
from noetl.tools.resources import bytes_of
from noetl.tools.tool import ToolCall, Workplace

NO_EXCEPTION = {"exception_type": None, "traceback": None}
"""The block of every outcome that no exception made."""
RESULTS = (AGAIN, LAST, *PURE)
LONGEST_MESSAGE, LONGEST_TRACEBACK = 8_192, 65_536
DIED = {"exception_type": "ChildDied", "traceback": ""}


class ChildFailure(msgspec.Struct, frozen=True):
    """The body of an answer that is no result."""

    kind: str
    message: str
    exception_type: str | None = None
    traceback: str | None = None


class PythonTool(FramedTool):
    """Calls run in warm children, at most `children` at once; further calls wait their turn."""

    keeps_time = True
    empty = NO_EXCEPTION

    def __init__(
        self,
        home: Path,
        *,
        children: int = 8,
        python: str = sys.executable,
        namespaces: Namespaces = "auto",
        private: Sequence[str] = (),
        build: bool = False,
    ) -> None:
        self._libs = Libs(home, python, namespaces=namespaces, private=private, build=build)
        if private:
            self._libs.make()
        hidden = hidden_places(home, private)
        self._children = PythonChildren(python, children, namespaces, hidden)
        self._processors = len(os.sched_getaffinity(0))

    def warm(self) -> None:
        """Have children ready before the first call: for a worker that lives long."""
        self._children.warm()

    async def _run(self, call: ToolCall[PythonInputs], workplace: Workplace) -> Outcome:
        """One run of the code, in fresh names."""
        libs = await self._folder(call) if call.inputs.libs else ""
        memory = bytes_of(call.resources.get("memory"))
        seconds = cpu_seconds(call.timeout.total, self._processors)
        request = request_of(call.inputs, libs, memory, seconds, shared=call.shared)
        key = (call.execution_id, libs, memory, call.shared)
        text = call.inputs.code if call.timeout.total is None else None
        while True:
            try:
                child = await self._children.take(key, text)
            except OSError as fault:
                message = f"the child process could not be started: {fault}"
                return failed("python", message, retryable=True)
            answer = await self._ask(child, key, request, call, workplace)
            if not answer.again:
                return await outcome_of(answer, call, workplace)
            text = None

    async def _folder(self, call: ToolCall[PythonInputs]) -> str:
        try:
            async with asyncio.timeout(call.timeout.total):
                return await self._libs.folder(call.inputs.libs)
        except TimeoutError:
            raise too_slow("libs were not installed", call.timeout.total) from None

    async def _ask(
        self,
        child: PythonChild,
        key: Key,
        request: bytes,
        call: ToolCall[Any],
        workplace: Workplace,
    ) -> ChildAnswer:
        output = Output(partial(workplace.log, call))
        total = call.timeout.total
        timer = None
        if total is not None:
            timer = asyncio.get_running_loop().call_later(total, child.kill)
        answer = ChildAnswer()
        try:
            answer = await child.ask(request, output)
        finally:
            late = timer is not None and timer.when() <= asyncio.get_running_loop().time()
            if timer is not None:
                timer.cancel()
            strays = answer.tag in (b"", LAST, FAILED_WITH_STRAYS)
            self._children.paces.learn(call.inputs.code, answer.tag)
            again = answer.again or answer.tag in PURE or answer.tag == AGAIN
            self._children.give_back(child, key, again=again, strays=strays)
        if answer.exit_code == UNCONFINED and self._children.mode == "demand":
            raise Refusal("input", DEMANDED)
        if answer.exit_code is None and self._children.learn(child):
            workplace.log(call, "system", WITHOUT)
        if answer.exit_code is not None and late:
            raise too_slow("the code did not end", total)
        return answer

    async def forget(self, scratch: str) -> None:
        """End the children of an execution that is over; a step run has nothing of its own."""
        self._children.forget(scratch)

    async def close(self) -> None:
        """End every child."""
        await self._children.close()


def request_of(
    inputs: PythonInputs, libs: str, memory: int, seconds: int, *, shared: bool = False
) -> bytes:
    """The frame for the child; what is no plain value is made one where that is possible."""
    try:
        return marshal.dumps((inputs.code, inputs.args, libs, memory, seconds, shared))
    except ValueError:
        pass
    try:
        args = msgspec.to_builtins(inputs.args, str_keys=True)
        return marshal.dumps((inputs.code, args, libs, memory, seconds, shared))
    except (ValueError, TypeError):
        says = "args hold something that is not a plain value; expected JSON"
        raise Refusal("input", says) from None


def too_slow(what: str, total: float | None) -> Refusal:
    """TASK-7."""
    return Refusal("timeout", f"{what} within {total:g} s", retryable=True)


async def outcome_of(answer: ChildAnswer, call: ToolCall[Any], workplace: Workplace) -> Outcome:
    """What the child said, or what became of it; code may have forged what it says."""
    if answer.exit_code is not None:
        return died(answer.exit_code)
    try:
        if answer.tag not in RESULTS:
            told = msgspec.json.decode(answer.body, type=ChildFailure)
            traceback = told.traceback and clipped_lines(told.traceback)
            block = {"exception_type": told.exception_type, "traceback": traceback}
            return failed(told.kind, beginning(told.message, LONGEST_MESSAGE), block=block)
        if len(answer.body) <= call.max_inline:
            return ok(msgspec.json.decode(answer.body))
        # EVT-4: it is JSON already, so it leaves as it came and takes no room here.
        msgspec.json.decode(answer.body, type=msgspec.Raw)
        return ok(await workplace.results.put(call.execution_id, bytes(answer.body)))
    except (msgspec.DecodeError, RecursionError) as fault:
        return failed("result", f"the result cannot be stored as JSON: {fault}")
    except LogUnavailable as fault:
        return failed("internal", str(fault), retryable=True)


def clipped_lines(text: str) -> str:
    """A traceback whose lines, and the whole of it, can be shown."""
    if len(text) <= LONGEST_MESSAGE:
        return text
    masked = KNOWN.masked(text)
    if len(masked) > LONGEST_TRACEBACK:
        half = LONGEST_TRACEBACK // 2
        masked = f"{masked[:half]}\n  …\n{masked[-half:]}"
    return "\n".join(line[:LONGEST_MESSAGE] for line in masked.split("\n"))


def died(exit_code: int) -> Outcome:
    """The process ended without an answer: by a signal, or by os._exit."""
    if exit_code >= 0:
        message = f"the child process ended with exit code {exit_code} before its answer"
        return failed("python", message, block=DIED)
    if -exit_code == signal.SIGXCPU:
        message = "the code used more processor time than its timeout allows, or a day of it"
        return failed("limit", message, block=DIED)
    name = signal.Signals(-exit_code).name
    message = f"the child process was killed by signal {-exit_code} ({name})"
    if -exit_code == signal.SIGKILL:
        message += "; perhaps the system ran out of memory"
    return failed("python", message, retryable=True, block=DIED)
