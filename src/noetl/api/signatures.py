"""
Is a call of a hook from whom it says, and was it made just now? (START-4)

Pure: what a request brings, the secret and the time go in; the id of the delivery comes out. What
the headers alone can tell is asked first, so that nobody's body is read for nothing.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

WINDOW: Final = 300
"""Seconds by which the time of a call may differ from ours."""
LONGEST: Final = 200
SIGNED: Final = re.compile(r"sha256=[0-9a-f]{64}")


class Unproved(Exception):
    """A call proves nothing; the text is for whoever runs the server, not for the caller."""


class HookCall(NamedTuple):
    """What a call brings; `path` is that of the trigger."""

    path: str
    headers: Mapping[str, str]
    now: float
    body: bytes = b""


class Scheme(NamedTuple):
    """How a call proves where it is from. Both raise Unproved."""

    by_headers: Callable[[str, HookCall], None]
    """What can be told before the body is read."""
    delivery: Callable[[str, HookCall], str | None]
    """The id of the delivery, the same when it comes again; None where each is one of its own."""


def signature(secret: str, path: str, body: bytes, time: int) -> str:
    """What a caller of the scheme `noetl` sends as `X-Noetl-Signature`."""
    return _hmac(secret, f"{time}.{path}\n".encode() + body)


def _hmac(secret: str, signed: bytes) -> str:
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def _noetl_headers(_: str, call: HookCall) -> None:
    time = call.headers.get("x-noetl-timestamp", "")
    if not (time.isascii() and time.isdecimal() and len(time) < 12):
        raise Unproved("the header X-Noetl-Timestamp is missing, or no number of seconds")
    if abs(call.now - int(time)) > WINDOW:
        raise Unproved(f"the call was signed more than {WINDOW} seconds ago, or ahead of time")
    _looks_signed(call, "X-Noetl-Signature")


def _noetl(secret: str, call: HookCall) -> str | None:
    expected = signature(secret, call.path, call.body, int(call.headers["x-noetl-timestamp"]))
    _compare(call.headers["x-noetl-signature"], expected, "X-Noetl-Signature")
    # Of the signature: another id beside the same words would be a way to start them again.
    return digest(expected.encode())


def _github_headers(_: str, call: HookCall) -> None:
    _looks_signed(call, "X-Hub-Signature-256")


def _github(secret: str, call: HookCall) -> str | None:
    _compare(call.headers["x-hub-signature-256"], _hmac(secret, call.body), "X-Hub-Signature-256")
    # It signs neither time nor X-GitHub-Delivery: the body alone says that it came before.
    return digest(call.body)


def _bearer_headers(secret: str, call: HookCall) -> None:
    scheme, _, token = call.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise Unproved("the call carries no bearer token")
    _compare(token.strip(), secret, "Authorization")


def _bearer(_: str, call: HookCall) -> str | None:
    name = call.headers.get("idempotency-key", "")
    if not name.isascii() or not name.isprintable() or len(name) > LONGEST:
        return None
    # Nobody chooses the key of a start: what a caller names is a part of a digest (START-2).
    return digest(name.encode()) if name else None


SCHEMES: Final[Mapping[str, Scheme]] = {
    "noetl": Scheme(_noetl_headers, _noetl),
    "github": Scheme(_github_headers, _github),
    "bearer": Scheme(_bearer_headers, _bearer),
}


def looks_signed(call: HookCall) -> bool:
    """
    Whether it brings what a signature of some scheme looks like, whatever its hook asks for: who
    has proved nothing learns from what follows neither whether there is a hook nor of what kind.
    """
    return any(_passes(SCHEMES[name], call) for name in ("noetl", "github"))


def _passes(scheme: Scheme, call: HookCall) -> bool:
    try:
        scheme.by_headers("", call)
    except Unproved:
        return False
    return True


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _looks_signed(call: HookCall, header: str) -> None:
    if SIGNED.fullmatch(call.headers.get(header.lower(), "")) is None:
        raise Unproved(f"the header {header} is missing or wrong")


def _compare(given: str, expected: str, header: str) -> None:
    if not hmac.compare_digest(given.encode(), expected.encode()):
        raise Unproved(f"the header {header} is missing or wrong")
