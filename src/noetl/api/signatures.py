"""
Is a call of a hook from whom it says, and was it made just now? (START-4)

Pure: what a request brings, the secret and the time go in; the id of the delivery comes out.
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Final

from noetl.errors import ServerRefused

WINDOW: Final = 300
"""Seconds by which the time of a call may differ from ours."""
LONGEST: Final = 200
HIDDEN: Final = frozenset(
    {"authorization", "cookie", "x-noetl-signature", "x-hub-signature", "x-hub-signature-256"}
)
"""Headers that prove who calls: no payload sees them."""

Headers = Mapping[str, str]


def delivery_of(scheme: str, secret: str, headers: Headers, body: bytes, now: float) -> str | None:
    """
    The id of the delivery, which is the same when it comes again; None where it has none and is
    one of its own. Raises ServerRefused (401) where the call proves nothing.
    """
    return SCHEMES[scheme](secret, headers, body, now)


def _noetl(secret: str, headers: Headers, body: bytes, now: float) -> str | None:
    time = headers.get("x-noetl-timestamp", "")
    if not (time.isascii() and time.isdecimal() and len(time) < 12):
        raise refused("the header X-Noetl-Timestamp is missing, or no number of seconds")
    given = headers.get("x-noetl-signature", "")
    _compare(given, signature(secret, body, int(time)), "X-Noetl-Signature")
    if abs(now - int(time)) > WINDOW:
        raise refused(f"the call was signed more than {WINDOW} seconds ago, or ahead of time")
    # The signature itself: another id beside the same words would be a way to start them again.
    return given.removeprefix("sha256=")[:64]


def _github(secret: str, headers: Headers, body: bytes, now: float) -> str | None:
    del now  # it signs no time
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    _compare(headers.get("x-hub-signature-256", ""), expected, "X-Hub-Signature-256")
    return _named(headers.get("x-github-delivery")) or hashlib.sha256(body).hexdigest()


def _bearer(secret: str, headers: Headers, body: bytes, now: float) -> str | None:
    del body, now
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise refused("the call carries no bearer token")
    _compare(token.strip(), secret, "Authorization")
    return _named(headers.get("idempotency-key"))


SCHEMES: Final[Mapping[str, Callable[[str, Headers, bytes, float], str | None]]] = {
    "noetl": _noetl,
    "github": _github,
    "bearer": _bearer,
}


def signature(secret: str, body: bytes, time: int) -> str:
    """What a caller of the scheme `noetl` sends as `X-Noetl-Signature`."""
    signed = f"{time}.".encode() + body
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def _named(name: str | None) -> str | None:
    if name is None or not name.isascii() or not name.isprintable() or len(name) > LONGEST:
        return None
    # Nobody chooses the key of a start: what a caller names is a part of a digest.
    return hashlib.sha256(name.encode()).hexdigest() if name else None


def _compare(given: str, expected: str, header: str) -> None:
    if not hmac.compare_digest(given.encode(), expected.encode()):
        raise refused(f"the header {header} is missing or wrong")


def refused(message: str) -> ServerRefused:
    return ServerRefused(message, code="unproved", status=401)
