"""What each way that a request can fail means: its error kind, and whether a repeat may help."""

import asyncio
import errno
import os
import re

import aiohttp

from noetl.messages.clipping import beginning
from noetl.messages.outcome import Outcome, failed
from noetl.playbook.model import Timeout

ERRNO = re.compile(r"\[Errno (\d+)\]")
RETRYABLE_STATUS = frozenset({408, 425, 429})
"""OUT-3; with them every status from 500 on."""


def is_retryable(status: int) -> bool:
    return status in RETRYABLE_STATUS or status >= 500


Row = tuple[type[BaseException], str, bool, str]
FAILURES: tuple[Row, ...] = (
    (aiohttp.TooManyRedirects, "input", False, "was redirected more than 10 times"),
    (aiohttp.NonHttpUrlClientError, "input", False, "leads to a URL that is not http or https"),
    (aiohttp.InvalidURL, "input", False, "leads to a URL that cannot be read"),
    (aiohttp.ClientConnectorCertificateError, "connection", False, "shows a bad certificate"),
    (aiohttp.ClientConnectorSSLError, "connection", True, "failed in the TLS handshake"),
    (aiohttp.ClientConnectorDNSError, "connection", True, "has a host name that was not found"),
    (aiohttp.ClientConnectorError, "connection", True, "could not connect"),
    (aiohttp.ServerDisconnectedError, "connection", True, "lost its connection before an answer"),
    (aiohttp.ClientPayloadError, "connection", True, "ended in the middle of the body"),
    (aiohttp.ClientConnectionError, "connection", True, "lost its connection"),
    (aiohttp.ClientResponseError, "decode", False, "got an answer that is not HTTP"),
    (aiohttp.ClientError, "connection", True, "failed"),
    (OSError, "connection", True, "lost its connection"),
    (ValueError, "input", False, "cannot be sent"),
)
"""The first row that fits holds; the exceptions stand from special to general."""


def failure_of(name: str, fault: BaseException, timeout: Timeout) -> Outcome:
    """The outcome of a request that came to no complete answer."""
    if isinstance(fault, asyncio.TimeoutError):
        return timed_out(name, fault, timeout)
    if isinstance(fault, aiohttp.ClientConnectorError) and fault.errno == errno.EACCES:
        return failed("input", f"{name} was not sent: {fault.strerror}")
    for kind_of_fault, kind, retryable, says in FAILURES:
        if isinstance(fault, kind_of_fault):
            return failed(kind, f"{name} {says}{_reason(fault)}", retryable=retryable)
    return failed("internal", f"{name} failed: {type(fault).__name__}{_reason(fault)}")


def timed_out(name: str, fault: BaseException, timeout: Timeout) -> Outcome:
    """TASK-7: the message says which of the three timeouts it was."""
    if isinstance(fault, aiohttp.ConnectionTimeoutError):
        says = f"got no connection in time (connect timeout{_seconds(timeout.connect)})"
    elif isinstance(fault, aiohttp.SocketTimeoutError):
        says = f"received no more bytes in time (read timeout{_seconds(timeout.read)})"
    else:
        says = f"was not complete in time (total timeout{_seconds(timeout.total)})"
    return failed("timeout", f"{name} {says}", retryable=True)


def _seconds(limit: float | None) -> str:
    return "" if limit is None else f" of {limit:g} s"


def connect_words(fault: aiohttp.ClientConnectorError) -> str:
    """In the system's words; asyncio hides them behind its own, and there once per address."""
    text = fault.strerror or str(fault.os_error)
    found = ERRNO.search(str(fault.os_error))
    return os.strerror(int(found[1])) if found and "Connect call failed" in text else text


def _reason(fault: BaseException) -> str:
    """The library's own word where it is short and says more; never a URL with its query."""
    if isinstance(fault, aiohttp.ClientConnectorCertificateError):
        return f": {fault.certificate_error}"
    if isinstance(fault, aiohttp.TooManyRedirects | aiohttp.InvalidURL):
        return ""
    if isinstance(fault, aiohttp.ClientConnectorError):
        return f": {connect_words(fault)}"
    if isinstance(fault, aiohttp.NonHttpUrlClientError):
        return ""
    text = fault.message if isinstance(fault, aiohttp.ClientResponseError) else str(fault)
    first = beginning(text.strip().partition("\n")[0], 200)
    return f": {first}" if first else ""
