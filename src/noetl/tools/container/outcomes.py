"""What the end of a container means: the outcome of the call, with its block (OUT-2, OUT-4)."""

import re
from typing import Any

import msgspec

from noetl.messages.outcome import Outcome, failed, ok
from noetl.tools.process.capture import CommandOutput
from noetl.tools.process.outcomes import TRY_AGAIN, result_of
from noetl.tools.process.running import CommandEnd

KILLED = 128 + 9
AWAY = re.compile(
    "connection refused|no such host|i/o timeout|tls handshake timeout|connection reset"
    "|toomanyrequests|server misbehaving|cannot connect to the docker daemon"
    "|is the docker daemon running"
)
"""In the words of both programs: a registry or the daemon that cannot be reached now."""
NO_IMAGE = re.compile(
    "image not known|no such image|manifest unknown|name unknown|pull access denied"
    "|repository does not exist|did not resolve to an alias|invalid reference format|unauthorized"
)
NOT_RUN: dict[str, Any] = dict.fromkeys(("engine", "image", "image_id", "exit_code", "oom_killed"))
"""The block of a call that came to no container."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a container that has ended."""

    engine: str
    image: str
    image_id: str | None = None
    exit_code: int | None = None
    """None: it was never started."""
    oom_killed: bool = False

    @property
    def block(self) -> dict[str, Any]:
        return msgspec.structs.asdict(self)


def outcome_of(ran: Ran, printed: CommandOutput, memory: int | None) -> Outcome:
    """A container that ended by itself."""
    result = result_of(CommandEnd(exit_code=ran.exit_code), printed)
    if ran.exit_code == 0:
        return ok(result, block=ran.block)
    if ran.oom_killed or (ran.exit_code == KILLED and memory is not None):
        bound = f" of {memory} bytes" if memory else ""
        says = f"the container was killed: it needs more memory than its limit{bound}"
        return failed("limit", f"{says}; see spec.resources.memory", block=ran.block, result=result)
    because = f": {printed.complaint}" if printed.complaint else ""
    says = f"the container ended with exit code {ran.exit_code}{because}"
    retryable = ran.exit_code in (TRY_AGAIN, KILLED)
    return failed("exit", says, retryable=retryable, block=ran.block, result=result)


def unstarted(ran: Ran, complaint: str) -> Outcome:
    """The program refused: there is no image, no such command, or nobody to ask."""
    said = complaint.removeprefix("Error: ").strip() or "it gave no reason"
    small = said.lower()
    if NO_IMAGE.search(small):
        says = f"the image '{ran.image}' is not there and cannot be pulled: {said}"
        hint = "check its name, or build or pull it where the worker runs"
        return failed("container", f"{says}; {hint}", block=ran.block)
    if AWAY.search(small):
        says = f"{ran.engine} cannot reach what it needs for the image '{ran.image}': {said}"
        return failed("connection", says, retryable=True, block=ran.block)
    says = f"{ran.engine} cannot start a container of '{ran.image}': {said}"
    return failed("container", says, block=ran.block)


def too_slow(total: float, ran: Ran, printed: CommandOutput) -> Outcome:
    """TASK-7; what it printed until then may tell why."""
    says = f"the container did not end within {total:g} s, and was removed"
    result = result_of(CommandEnd(exit_code=ran.exit_code), printed)
    return failed("timeout", says, retryable=True, block=ran.block, result=result)
