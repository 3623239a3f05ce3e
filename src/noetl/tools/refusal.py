"""How a part of a tool gives up in the middle: with the outcome that the call shall have."""

from typing import Any

from noetl.messages.outcome import Outcome, failed


class Refusal(Exception):
    """Ends a call from the inside; never leaves `Tool.call`."""

    def __init__(self, kind: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.outcome: Outcome = failed(kind, message, **more)


def needs_extra(what: str, extra: str) -> Refusal:
    """An optional dependency is not there."""
    says = f"{what} needs an extra: install it with pip install 'noetl[{extra}]'"
    return Refusal("not_found", says)
