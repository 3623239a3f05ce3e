"""How a part of a tool gives up in the middle, with the outcome that the call shall have."""

import base64
import binascii
from typing import Any

import msgspec

from noetl.extras import needs
from noetl.messages.outcome import Outcome, failed


class Refusal(Exception):
    """Ends a call from the inside; never leaves `Tool.call`."""

    def __init__(self, kind: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.outcome: Outcome = failed(kind, message, **more)


def needs_extra(what: str, extra: str) -> Refusal:
    """An optional dependency is not there."""
    return Refusal("not_found", needs(what, extra))


def json_of(value: Any, wrong: str) -> bytes:
    """The value as JSON; `wrong` says what is the matter where it is none."""
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as fault:
        raise Refusal("input", f"{wrong}: {fault}") from None


def bytes_of(value: Any, wrong: str) -> bytes:
    """Text as it is, anything else as JSON."""
    if not isinstance(value, str):
        return json_of(value, wrong)
    try:
        return value.encode()
    except UnicodeEncodeError as fault:
        raise Refusal("input", f"{wrong}: {fault}") from None


def base64_bytes(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as fault:
        raise Refusal("input", f"{what} is not base64 text: {fault}") from None


def first_line(fault: BaseException) -> str:
    """What a library says, without the pages that may follow."""
    return str(fault).strip().partition("\n")[0]
