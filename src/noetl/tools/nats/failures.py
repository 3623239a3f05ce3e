"""What each way that NATS can fail means: its error kind, and whether a repeat may help."""

import asyncio
import socket
import ssl
from typing import Any

from nats import errors
from nats.js import errors as stream_errors

from noetl.messages.clipping import beginning
from noetl.messages.outcome import Outcome, failed

Row = tuple[type[BaseException], str, bool, str]
FAILURES: tuple[Row, ...] = (
    (errors.AuthorizationError, "auth", False, "was refused: the server does not know these names"),
    (errors.NoRespondersError, "not_found", True, "has no receiver: nothing subscribes"),
    (stream_errors.NoStreamResponseError, "not_found", False, "was kept by no stream"),
    (stream_errors.BucketNotFoundError, "not_found", False, "found no such bucket"),
    (stream_errors.KeyNotFoundError, "not_found", False, "found no such key"),
    (stream_errors.ObjectNotFoundError, "not_found", False, "found no such object"),
    (stream_errors.ObjectDeletedError, "not_found", False, "found that the object was deleted"),
    (stream_errors.NotFoundError, "not_found", False, "found nothing there"),
    (stream_errors.ServiceUnavailableError, "connection", True, "needs JetStream on the server"),
    (errors.MaxPayloadError, "limit", False, "is larger than the server allows"),
    (errors.BadSubjectError, "input", False, "has an invalid subject"),
    (errors.BadHeaderError, "input", False, "has an invalid header"),
    (stream_errors.InvalidKeyError, "input", False, "has an invalid key"),
    (stream_errors.InvalidBucketNameError, "input", False, "has an invalid bucket name"),
    (stream_errors.InvalidObjectNameError, "input", False, "has an invalid object name"),
    (stream_errors.BadRequestError, "input", False, "was refused"),
    (stream_errors.APIError, "connection", True, "failed on the server"),
    (ssl.SSLCertVerificationError, "connection", False, "shows a bad certificate"),
    (ssl.SSLError, "connection", True, "failed in the TLS handshake"),
    (socket.gaierror, "connection", True, "has a host name that was not found"),
    (OSError, "connection", True, "could not be opened"),
    (errors.Error, "connection", True, "lost its connection"),
    (ValueError, "input", False, "cannot be sent"),
)
"""The first row that fits holds; the exceptions stand from special to general."""


def failure_of(name: str, fault: BaseException, *, seconds: float | None = None) -> Outcome:
    """The outcome of an operation that failed."""
    block = block_of(fault)
    if isinstance(fault, asyncio.TimeoutError):
        within = "" if seconds is None else f" within {seconds:g} s"
        return failed("timeout", f"{name} had no answer{within}", retryable=True, block=block)
    if "authorization" in str(fault).lower() or "authentication" in str(fault).lower():
        fault = errors.AuthorizationError()
    for kind_of_fault, kind, retryable, says in FAILURES:
        if isinstance(fault, kind_of_fault):
            message = f"{name} {says}{reason_of(fault)}"
            return failed(kind, message, retryable=retryable, block=block)
    says = f"{name} failed: {type(fault).__name__}: {fault}"
    return failed("internal", says, block=block)


def block_of(fault: BaseException) -> dict[str, Any] | None:
    """OUT-2: what JetStream itself says."""
    if not isinstance(fault, stream_errors.APIError):
        return None
    # Those that the library makes itself lack the fields that a server's answer has.
    code = getattr(fault, "err_code", None) or getattr(fault, "code", None)
    return {"code": code, "description": getattr(fault, "description", None)}


def reason_of(fault: BaseException) -> str:
    """The words of the server or the system, where they say more."""
    if isinstance(fault, stream_errors.APIError):
        says = getattr(fault, "description", None)
        return f": {says}" if says else ""
    if isinstance(fault, OSError | ValueError):
        return f": {beginning(str(fault), 200)}"
    return ""
