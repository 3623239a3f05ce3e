"""How a part of a tool gives up in the middle: with the outcome that the call shall have."""

from typing import Any

from noetl.messages.outcome import Outcome, failed


class Refusal(Exception):
    """Ends a call from the inside; never leaves `Tool.call`."""

    def __init__(self, kind: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.outcome: Outcome = failed(kind, message, **more)


def unforeseen(fault: Exception) -> Outcome:
    """A call never raises: what no clause names is our own mistake, and said to be."""
    return failed("internal", f"unexpected {type(fault).__name__}: {fault}")
