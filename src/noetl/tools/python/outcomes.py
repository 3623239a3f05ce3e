"""What a child's answer means: the outcome of the call, with its block (OUT-2)."""

import signal
from typing import Any

import msgspec

from noetl.errors import LogUnavailable
from noetl.messages.outcome import Outcome, failed, ok
from noetl.tools.python.child import ChildAnswer
from noetl.tools.python.inside.frames import AGAIN, LAST
from noetl.tools.refusal import Refusal
from noetl.tools.tool import ToolCall, Workplace

NO_EXCEPTION = {"exception_type": None, "traceback": None}
"""The block of every outcome that no exception made."""
DIED = {"exception_type": "ChildDied", "traceback": ""}


class ChildFailure(msgspec.Struct, frozen=True):
    """The body of an answer that is no result."""

    kind: str
    message: str
    exception_type: str | None = None
    traceback: str | None = None


def too_slow(what: str, total: float | None) -> Refusal:
    """TASK-7."""
    return Refusal("timeout", f"{what} within {total:g} s", retryable=True)


async def outcome_of(answer: ChildAnswer, call: ToolCall[Any], workplace: Workplace) -> Outcome:
    """What the child said, or what became of it; code may have forged what it says."""
    if answer.exit_code is not None:
        return died(answer.exit_code)
    try:
        if answer.tag not in (AGAIN, LAST):
            return raised(msgspec.json.decode(answer.body, type=ChildFailure))
        if len(answer.body) > call.max_inline:
            return await stored(bytes(answer.body), call, workplace)
        return ok(msgspec.json.decode(answer.body))
    except (msgspec.DecodeError, RecursionError) as fault:
        return failed("result", f"the result is no JSON that can be kept: {fault}")


async def stored(body: bytes, call: ToolCall[Any], workplace: Workplace) -> Outcome:
    """EVT-4: it is JSON already, so it leaves as it came and takes no room here."""
    msgspec.json.decode(body, type=msgspec.Raw)
    try:
        reference = await workplace.results.put(call.execution_id, body)
    except LogUnavailable as fault:
        return failed("internal", str(fault), retryable=True)
    return ok(reference)


def raised(told: ChildFailure) -> Outcome:
    block = {"exception_type": told.exception_type, "traceback": told.traceback}
    return failed(told.kind, told.message, block=block)


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
