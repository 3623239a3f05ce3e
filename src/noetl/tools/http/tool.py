"""Sends requests for tasks of kind `http`, through one pool of connections."""

import asyncio
from contextlib import ExitStack
from functools import lru_cache, partial
from typing import Any, ClassVar

import aiohttp
from msgspec.structs import asdict, replace
from yarl import URL

from noetl.kinds.http import HttpInputs
from noetl.messages.outcome import Outcome, failed, ok
from noetl.playbook.model import Timeout
from noetl.tools.bounds import Denied
from noetl.tools.frame import FramedTool, within
from noetl.tools.http.addresses import opening
from noetl.tools.http.body import Body, read_answer
from noetl.tools.http.failures import failure_of, is_retryable, timed_out
from noetl.tools.http.request import Request, make_request, multipart
from noetl.tools.retries import Pause, repeated
from noetl.tools.tool import ToolCall, Workplace

REDIRECTS = 10
POOL = 100
LONGEST = 2 * 1024**3
SILENCE = Timeout(connect=30, read=300)
"""What holds where the task sets no timeout: a call never hangs on a peer that went silent."""
_HEAD = 65_536
_FAULTS = (aiohttp.ClientError, OSError, ValueError, RuntimeError)


class HttpTool(FramedTool):
    """
    One pool per event loop and size; nothing is remembered between calls, cookies least of all.

    `longest` bounds a body after decompression; `deny` says which addresses are not reached.
    """

    keeps_time = True
    empty: ClassVar[dict[str, Any]] = {"status": None, "headers": {}}

    def __init__(
        self,
        *,
        deny: Denied = "link_local",
        longest: int = LONGEST,
        pause: Pause = asyncio.sleep,
    ) -> None:
        self._open = opening(deny)
        self._longest = longest
        self._pause = pause
        self._sessions: dict[tuple[asyncio.AbstractEventLoop, int], aiohttp.ClientSession] = {}

    async def close(self) -> None:
        sessions = list(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            await session.close()

    async def _run(self, call: ToolCall[HttpInputs], workplace: Workplace) -> Outcome:
        request = None
        try:
            async with within(call.timeout.total):
                request = await make_request(call, workplace)
                if not call.client_retries:
                    return await self._send(request, call, workplace)
                sending = partial(self._send, request, call, workplace)
                return await repeated(sending, call.client_retries, self._pause)
        except TimeoutError as fault:
            return timed_out(name_of(request), fault, call.timeout)
        except UnicodeError as fault:
            return failed("input", f"{name_of(request)} cannot be sent: {fault}")

    async def _send(self, request: Request, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        try:
            if call.inputs.files is None:
                return await self._exchange(request, request.body, workplace)
            with ExitStack() as opened:  # files are open as long as they are sent
                return await self._exchange(request, multipart(call, opened), workplace)
        except _FAULTS as fault:
            return failure_of(request.name, fault, silence_of(call.timeout))

    async def _exchange(
        self,
        request: Request,
        payload: bytes | aiohttp.MultipartWriter | None,
        workplace: Workplace,
    ) -> Outcome:
        call = request.call
        async with self._session(call.pool or POOL).request(
            request.method,
            request.url,
            headers=request.headers,
            data=payload,
            skip_auto_headers=() if payload is not None else ("Content-Type",),
            allow_redirects=call.inputs.follow_redirects,
            max_redirects=REDIRECTS + 1,
            timeout=patience_of(call.timeout),
            middlewares=_hiding(request) if request.private else (),
        ) as answer:
            body = await read_answer(answer, call, workplace, self._longest)
        return outcome_of(request, answer, body)

    def _session(self, size: int) -> aiohttp.ClientSession:
        place = (asyncio.get_running_loop(), size)
        session = self._sessions.get(place)
        if session is None:
            session = self._sessions[place] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=size, socket_factory=self._open),
                cookie_jar=aiohttp.DummyCookieJar(),
                max_line_size=_HEAD,
                max_field_size=_HEAD,
            )
        return session


def name_of(request: Request | None) -> str:
    return "the request" if request is None else request.name


@lru_cache(64)
def silence_of(timeout: Timeout) -> Timeout:
    """The task's timeouts, and the house's where the task is silent."""
    told = {name: value for name, value in asdict(timeout).items() if value is not None}
    return replace(SILENCE, **told)


@lru_cache(64)
def patience_of(timeout: Timeout) -> aiohttp.ClientTimeout:
    """The same as the library takes them; the whole is timed around it."""
    limits = silence_of(timeout)
    return aiohttp.ClientTimeout(total=None, sock_connect=limits.connect, sock_read=limits.read)


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
    headers = answer.headers
    named = {name.lower(): value for name, value in headers.items()}
    if len(named) == len(headers):
        return named
    return {name: ", ".join(headers.getall(name)) for name in named}


def _hiding(request: Request) -> tuple[aiohttp.ClientMiddlewareType, ...]:
    """What may say who asks goes to the host that was asked, and to no other that it names."""
    names = request.private
    origin: URL = request.url.origin()

    async def hide(
        hop: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if hop.url.origin() != origin:
            for name in names:
                hop.headers.popall(name, None)
        return await send(hop)

    return (hide,)
