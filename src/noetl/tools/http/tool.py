"""Sends requests for tasks of kind `http`, through one pool of connections."""

import asyncio
import errno
import ipaddress
import socket
from contextlib import ExitStack
from functools import partial
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from noetl.errors import CredentialMissing
from noetl.kinds.http import HttpInputs
from noetl.messages.outcome import Outcome, failed, ok
from noetl.playbook.model import Timeout
from noetl.tools.http.body import Body, read_body
from noetl.tools.http.failures import failure_of, is_retryable, timed_out
from noetl.tools.http.request import Request, make_request
from noetl.tools.refusal import Refusal, unforeseen
from noetl.tools.retries import Pause, repeated
from noetl.tools.tool import ToolCall, Workplace

REDIRECTS = 10
POOL = 100
LONGEST = 2 * 1024**3
SILENCE = Timeout(connect=30, read=300)
"""What holds where the task sets no timeout: a call never hangs on a peer that went silent."""
_HEAD = 65_536
_FAULTS = (aiohttp.ClientError, OSError, ValueError, RuntimeError)


class HttpTool:
    """
    One pool per event loop and size; nothing is remembered between calls, cookies least of all.

    `longest` bounds a body after decompression; `deny_private` keeps requests away from
    addresses that are not public.
    """

    keeps_time = True

    def __init__(
        self, *, deny_private: bool = False, longest: int = LONGEST, pause: Pause = asyncio.sleep
    ) -> None:
        self._deny_private = deny_private
        self._longest = longest
        self._pause = pause
        self._sessions: dict[tuple[asyncio.AbstractEventLoop, int], aiohttp.ClientSession] = {}

    async def call(self, call: ToolCall[HttpInputs], workplace: Workplace) -> Outcome:
        outcome = await self._bounded(call, workplace)
        if outcome.block is None:  # so that a policy may ask for `outcome.http.status` always
            return msgspec.structs.replace(outcome, block={"status": None, "headers": {}})
        return outcome

    async def _bounded(self, call: ToolCall[HttpInputs], workplace: Workplace) -> Outcome:
        name = "the request"
        try:
            async with asyncio.timeout(call.timeout.total):
                request = await make_request(call, workplace)
                name = request.name
                sending = partial(self._send, request, call, workplace)
                return await repeated(sending, call.client_retries, self._pause)
        except Refusal as refusal:
            return refusal.outcome
        except CredentialMissing as missing:
            return failed("auth", str(missing))
        except TimeoutError as fault:
            return timed_out(name, fault, call.timeout)
        except UnicodeError as fault:
            return failed("input", f"{name} cannot be sent: {fault}")
        except Exception as fault:
            return unforeseen(fault)

    async def forget(self, scratch: str) -> None:
        """Nothing lives for a step run."""

    async def close(self) -> None:
        sessions = list(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            await session.close()

    async def _send(self, request: Request, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        limits = silence_of(call.timeout)
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=limits.connect, sock_read=limits.read
        )
        try:
            with ExitStack() as opened:
                payload = request.payload(opened)
                async with self._session(call.pool or POOL).request(
                    request.method,
                    request.url,
                    headers=request.headers,
                    data=payload,
                    skip_auto_headers=() if payload is not None else ("Content-Type",),
                    allow_redirects=request.inputs.follow_redirects,
                    max_redirects=REDIRECTS + 1,
                    timeout=timeout,
                    middlewares=_hiding(request),
                ) as answer:
                    body = await read_body(answer, call, workplace.results, self._longest)
        except _FAULTS as fault:
            return failure_of(request.name, fault, limits)
        return outcome_of(request, answer, body)

    def _session(self, size: int) -> aiohttp.ClientSession:
        place = (asyncio.get_running_loop(), size)
        session = self._sessions.get(place)
        if session is None:
            session = self._sessions[place] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=size,
                    socket_factory=open_public_socket if self._deny_private else None,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                max_line_size=_HEAD,
                max_field_size=_HEAD,
            )
        return session


def silence_of(timeout: Timeout) -> Timeout:
    """The task's timeouts, and the house's where the task is silent."""
    return Timeout(
        connect=SILENCE.connect if timeout.connect is None else timeout.connect,
        read=SILENCE.read if timeout.read is None else timeout.read,
        total=timeout.total,
    )


def outcome_of(request: Request, answer: aiohttp.ClientResponse, body: Body) -> Outcome:
    """OUT-2, OUT-3. A bad status outweighs a body that cannot be read."""
    headers = headers_of(answer)
    block: dict[str, Any] = {"status": answer.status, "headers": headers}
    if body.encoding:
        block["encoding"] = body.encoding
    result = {"status": answer.status, "headers": headers, "data": body.value}
    if answer.status >= 400:
        reason = f" {answer.reason}" if answer.reason else ""
        says = f"{request.name} was answered with {answer.status}{reason}"
        retryable = is_retryable(answer.status)
        return failed("http", says, retryable=retryable, block=block, result=result)
    if body.fault is not None:
        says = f"{request.name} was answered, but {body.fault}"
        return failed("decode", says, block=block, result=result)
    return ok(result, block=block)


def headers_of(answer: aiohttp.ClientResponse) -> dict[str, str]:
    """Names in lower case; what came several times is joined by commas."""
    headers: dict[str, str] = {}
    for name, value in answer.headers.items():
        low = name.lower()
        headers[low] = f"{headers[low]}, {value}" if low in headers else value
    return headers


def _hiding(request: Request) -> tuple[aiohttp.ClientMiddlewareType, ...]:
    """The client drops Authorization on the way to another host; a key in its own header too."""
    names = request.private - {"authorization"}
    if not names:
        return ()
    origin: URL = request.url.origin()

    async def hide(
        hop: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if hop.url.origin() != origin:
            for name in names:
                hop.headers.popall(name, None)
        return await send(hop)

    return (hide,)


AddressRow = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[Any, ...]]
"""One answer of name resolution, as the connector hands it over."""


class AddressDenied(OSError):
    """The address is private, and this tool was told to stay away from those."""

    def __init__(self, address: str) -> None:
        super().__init__(errno.EACCES, f"address {address} is private or local, which is denied")


def is_public(address: str) -> bool:
    """False for loopback, private, link-local, shared, reserved and multicast addresses."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    hidden = getattr(parsed, "ipv4_mapped", None) or getattr(parsed, "sixtofour", None)
    return bool(parsed.is_global and not parsed.is_multicast) and (
        hidden is None or is_public(str(hidden))
    )


def open_public_socket(row: AddressRow) -> socket.socket:
    """
    The connector's way to make a socket. `row` holds the very address that is connected to, so
    no second resolution can change it, and each redirect passes here again.
    """
    family, kind, protocol, _, place = row
    if not is_public(str(place[0])):
        raise AddressDenied(str(place[0]))
    return socket.socket(family, kind, protocol)
