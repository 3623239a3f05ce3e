"""A seed that does not end: no clock of the world stops who asks for ever in one turn."""

import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from tests.simulation.audit import Violation

SECONDS = 30.0
"""CPU time that one world may take; a usual one takes a tenth of one."""


class Endless(KeyboardInterrupt):
    """Of a kind that no part of the program catches, and no task keeps for itself."""


@contextmanager
def bounded(seconds: float = SECONDS) -> Iterator[None]:
    def ring(_: int, frame: FrameType | None) -> None:
        raise Endless("".join(traceback.format_stack(frame)[-6:]))

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    except Endless as endless:
        raise Violation(f"it does not end: {seconds:g} s of CPU\n{endless}") from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
