"""Makes values from others for tasks of kind `transform`: by templates, or by a jq program."""

import asyncio
import importlib.util
import marshal
import os
import socket
from typing import Any, ClassVar

import msgspec

from noetl.errors import BodyLost
from noetl.kinds.flow import TransformInputs
from noetl.masking import KNOWN
from noetl.messages.outcome import Outcome, failed, ok
from noetl.messages.reference import Reference
from noetl.tools.bounds import cpu_seconds
from noetl.tools.children import INSIDE, end_group, isolated, spawn
from noetl.tools.frame import FramedTool
from noetl.tools.framed_socket import FramedSocket, PeerGone
from noetl.tools.process.inside.jq_child import FAILED, UNREADABLE
from noetl.tools.refusal import Refusal, json_of, needs_extra
from noetl.tools.resources import bytes_of
from noetl.tools.spill import keep
from noetl.tools.tool import ToolCall, Workplace

CHILDREN = 4
KINDS = {UNREADABLE: "input", FAILED: "template"}
"""What a program that gives no result comes to: it cannot be read, or it failed on its input."""


class TransformTool(FramedTool):
    """
    `value` is rendered before the call, so the result is there. A jq program runs in a child:
    it may have no end, and jq itself cannot be interrupted.
    """

    keeps_time = True
    empty: ClassVar[dict[str, Any]] = {"outputs": 0}

    def __init__(self, *, children: int = CHILDREN) -> None:
        self._free: list[TransformChild] = []
        """Those that answered; they are kept for the next program."""
        self._turns = asyncio.Semaphore(children)

    async def close(self) -> None:
        while self._free:
            self._free.pop().end()

    async def _run(self, call: ToolCall[TransformInputs], workplace: Workplace) -> Outcome:
        inputs = call.inputs
        if inputs.jq is None:
            return ok(inputs.value, block={"outputs": 1})
        async with asyncio.timeout(call.timeout.total):
            module = jq_module()
            memory = bytes_of(call.resources.get("memory"))
            given = await input_of(inputs.input, workplace)
            request = (memory, cpu_seconds(call.timeout.total, 1), inputs.jq, given)
            try:
                tag, body = await self._ask(module, request)
            except PeerGone:
                says = f"the jq program needs more memory than the {memory} bytes that it may use"
                raise Refusal("limit", f"{says}, or much time; see spec.resources.memory") from None
            if tag in KINDS:
                says = body.decode("utf-8", "replace").strip().removeprefix("jq: error: ")
                raise Refusal(KINDS[tag], f"jq: {unquoted(says, given)}")
            return await result_of(body, call, workplace)

    async def _ask(self, module: str, request: tuple[int, int, str, str]) -> tuple[bytes, bytes]:
        """What jq makes of the input; cancelling it ends the program."""
        async with self._turns:
            child = self._free.pop() if self._free else TransformChild(module)
            try:
                answer = await child.ask(request)
            except BaseException:
                child.end()
                raise
            self._free.append(child)
            return answer

    def _failure(self, call: ToolCall[Any], fault: Exception) -> Outcome | None:
        match fault:
            case BodyLost():
                return failed("result", str(fault))
            case TimeoutError():
                says = f"the jq program did not end within {call.timeout.total:g} s"
                return failed("timeout", says, retryable=True)
            case OSError():
                says = f"the jq program cannot be started: {fault}"
                return failed("internal", says, retryable=True)
        return None


def unquoted(says: str, given: str) -> str:
    """KEY-2: jq cuts short what it quotes, and the beginning of a secret is not known as one."""
    if "..." in says and KNOWN.found_in(given.encode()):
        return (
            "the program failed on its input; the reason is not shown because it contains a secret"
        )
    return says


def jq_module() -> str:
    """The file of the jq module, which the child loads."""
    spec = importlib.util.find_spec("jq")
    if spec is None or spec.origin is None:
        raise needs_extra("'jq'", "transform")
    return spec.origin


async def input_of(value: Any, workplace: Workplace) -> str:
    """The input as jq reads it; a stored value is loaded here, and for jq only."""
    if isinstance(value, Reference):
        value = await workplace.results.fetch(value)
    return json_of(value, "input holds what no JSON can hold").decode()


async def result_of(body: bytes, call: ToolCall[Any], workplace: Workplace) -> Outcome:
    """The only output itself; several as a list; none as null."""
    outputs = body.split(b"\n") if body else []
    whole = outputs[0] if len(outputs) == 1 else b"[" + b",".join(outputs) + b"]"
    block = {"outputs": len(outputs)}
    if not outputs:
        return ok(None, block=block)
    if len(whole) > call.max_inline:
        reference = await keep(workplace.results, call.execution_id, whole)
        return ok(reference, block=block)
    try:
        return ok(msgspec.json.decode(whole), block=block)
    except (msgspec.DecodeError, RecursionError) as fault:
        raise Refusal("result", f"the result cannot be stored as JSON: {fault}") from None


PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from inside.jq_child import serve; "
    "serve(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])"
)


class TransformChild:
    """One process, one program at a time."""

    def __init__(self, module: str) -> None:
        self._ours, theirs = socket.socketpair()
        with theirs:
            given = (str(theirs.fileno()), str(os.getpid()), module)
            words = isolated(PROGRAM, INSIDE, *given)
            self._process = spawn(words, fds=(theirs.fileno(),), cwd="/")
        self._framed = FramedSocket(self._ours)

    async def ask(self, request: tuple[int, int, str, str]) -> tuple[bytes, bytes]:
        """
        The tag and body of the answer to memory, processor time, program and input; after anything
        but an answer the child must be ended.
        """
        await self._framed.send(marshal.dumps(request))
        return await self._framed.receive()

    def end(self) -> None:
        """Kill it; it has nothing to clean up."""
        end_group(self._process.pid)
        self._process.wait()
        self._ours.close()
