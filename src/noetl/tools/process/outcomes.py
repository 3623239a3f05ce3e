"""What the end of a command means: the outcome of the call, with its block (OUT-2, OUT-3)."""

import os
import signal
from typing import Any

from noetl.messages.outcome import Outcome, failed, ok
from noetl.tools.bounds import DEMANDED
from noetl.tools.process.capture import CommandOutput
from noetl.tools.process.running import CommandEnd

TOO_MUCH_CPU = "the command used more processor time than its timeout allows, or a day of it"
TRY_AGAIN = 75
"""EX_TEMPFAIL of sysexits.h: the program itself says that another try may succeed."""
FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM)
"""Signals that others send; a program that falls to any other falls again."""
SIGNALLED = 128
"""What a shell adds to the number of the signal that ended a command."""
LACKING = {
    "network": "spec.resources.network is none, but the kernel of this worker does not allow that;"
    " allow user namespaces, or leave it out",
    "namespaces": DEMANDED,
}
NOT_RUN: dict[str, Any] = {"exit_code": None, "signal": None}
"""The block of a call that came to no command."""


def outcome_of(ended: CommandEnd, printed: CommandOutput, program: str) -> Outcome:
    """A command that ended by itself."""
    if ended.fault is not None:
        says = f"'{program}' cannot be run: {os.strerror(ended.fault)}"
        return failed("not_found", says, block=NOT_RUN)
    if ended.lacking is not None:
        return failed("input", LACKING[ended.lacking], block=NOT_RUN)
    block, result = block_of(ended, printed), result_of(ended, printed)
    if ended.exit_code == 0:
        return ok(result, block=block)
    because = f": {printed.complaint}" if printed.complaint else ""
    if ended.signal == signal.SIGXCPU:
        return failed("limit", f"{TOO_MUCH_CPU}{because}", block=block, result=result)
    if ended.signal is None:
        says = f"the command ended with exit code {ended.exit_code}{because}"
        retryable = ended.exit_code == TRY_AGAIN
    else:
        says = f"the command was killed by signal {ended.signal} ({name_of(ended.signal)}){because}"
        retryable = ended.signal in FROM_OUTSIDE
    return failed("exit", says, retryable=retryable, block=block, result=result)


def cut_short(total: float | None, ended: CommandEnd, printed: CommandOutput) -> Outcome:
    """TASK-7, or a worker that stops (`total` None); what was printed until then may tell why."""
    kind, says = "cancelled", "the command was stopped: its result is no longer needed"
    if total is not None:
        kind, says = "timeout", f"the command did not end within {total:g} s, and was ended"
    block, result = block_of(ended, printed), result_of(ended, printed)
    return failed(kind, says, retryable=total is not None, block=block, result=result)


def result_of(ended: CommandEnd, printed: CommandOutput) -> dict[str, Any]:
    return {
        "exit_code": code_of(ended),
        "stdout": printed.stdout.value,
        "stderr": printed.stderr.value,
        "data": printed.stdout.parsed,
    }


def block_of(ended: CommandEnd, printed: CommandOutput) -> dict[str, Any]:
    block: dict[str, Any] = {
        "exit_code": code_of(ended),
        "signal": None if ended.signal is None else name_of(ended.signal),
    }
    streams = {"stdout": printed.stdout, "stderr": printed.stderr}
    notes = {name: one.encoding for name, one in streams.items() if one.encoding}
    return {**block, "encoding": notes} if notes else block


def code_of(ended: CommandEnd) -> int | None:
    """As a shell tells it, so that a rule needs one question only."""
    return ended.exit_code if ended.signal is None else SIGNALLED + ended.signal


def name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no names
        return f"signal {number}"
