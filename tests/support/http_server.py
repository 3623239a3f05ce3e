"""A real HTTP server on loopback that behaves well or badly, as the test asks."""

import asyncio
import gzip
import ssl
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, cast

import msgspec
from aiohttp import web

PATIENCE = 600.0
"""How long a test waits for a fact before it fails; never a time that is expected to pass."""
CERTIFICATE = Path(__file__).with_name("loopback.pem")
"""Signed by itself, and its key: good for nothing but a test of refusal."""
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Seen(msgspec.Struct, frozen=True):
    """One request as it arrived."""

    method: str
    path: str
    query: list[tuple[str, str]]
    headers: dict[str, str]
    body: bytes


class HttpServer:
    """Runs in its own thread, so that any event loop and any child process can ask it."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.seen: list[Seen] = []
        self.totals: dict[str, int] = {}
        self._dropped: Counter[str] = Counter()
        self._failing: dict[str, tuple[int, int]] = {}
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="http-server", daemon=True)
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def fail(self, path: str, times: int, status: int = 503) -> None:
        """The next `times` requests for `path` are answered with `status`."""
        self._failing[path] = (times, status)

    def count(self, path: str) -> int:
        return sum(1 for seen in self.seen if seen.path == path)

    def keys(self, path: str) -> Counter[str]:
        """How often each Idempotency-Key was used for `path`."""
        return Counter(
            seen.headers.get("idempotency-key", "") for seen in self.seen if seen.path == path
        )

    def wait_for(self, path: str, times: int = 1) -> None:
        """Until `path` was asked for `times` times."""
        self._wait(lambda: self.count(path) >= times, f"{times} requests for {path}")

    def wait_for_drop(self, path: str, times: int = 1) -> None:
        """Until the client left a request for `path` unanswered."""
        self._wait(lambda: self._dropped[path] >= times, f"{times} dropped requests for {path}")

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(PATIENCE)
        return self

    def __exit__(self, *fault: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def _wait(self, fact: Callable[[], bool], what: str) -> None:
        with self._changed:
            assert self._changed.wait_for(fact, PATIENCE), f"waited in vain for {what}"

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _start(self) -> None:
        application = web.Application(middlewares=[self._watch], client_max_size=2**28)
        for path, answer in {**ROUTES, "/api/v1/{name}": self._page, "/hang": self._hang}.items():
            application.router.add_route("*", path, answer)
        application.router.add_route("*", "/slow-body", self._slow_body)
        self._runner = web.AppRunner(
            application, handler_cancellation=True, shutdown_timeout=0, access_log=None
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        self._stopping.set()
        assert self._runner is not None
        await self._runner.cleanup()

    @web.middleware
    async def _watch(self, request: web.Request, handler: Answer) -> web.StreamResponse:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        query = list(request.query.items())
        with self._changed:
            self.seen.append(Seen(request.method, request.path, query, headers, body))
            self._changed.notify_all()
        times, status = self._failing.get(request.path, (0, 0))
        if times:
            self._failing[request.path] = (times - 1, status)
            return web.json_response({"error": "try again"}, status=status)
        try:
            return await handler(request)
        except asyncio.CancelledError:
            with self._changed:
                self._dropped[request.path] += 1
                self._changed.notify_all()
            raise

    async def _page(self, request: web.Request) -> web.Response:
        """S0 §13: one page of a collection, with `paging.hasMore`."""
        name = request.match_info["name"]
        page, size = int(request.query.get("page", 1)), int(request.query.get("pageSize", 10))
        total = self.totals.get(name, 25)
        rows = [
            {"id": number, "name": f"{name}-{number}"}
            for number in range((page - 1) * size + 1, min(page * size, total) + 1)
        ]
        paging = {"hasMore": page * size < total, "page": page, "pageSize": size, "total": total}
        return web.json_response({"data": rows, "paging": paging})

    async def _hang(self, _: web.Request) -> web.Response:
        """Never answers."""
        await self._stopping.wait()
        return web.Response()

    async def _slow_body(self, request: web.Request) -> web.StreamResponse:
        """Begins a body and never ends it."""
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"the beginning")
        await self._stopping.wait()
        return answer


async def _echo(request: web.Request) -> web.Response:
    body = await request.read()
    shown: dict[str, Any] = {
        "method": request.method,
        "query": [list(pair) for pair in request.query.items()],
        "headers": {name.lower(): value for name, value in request.headers.items()},
        "body": body.decode("utf-8", "replace"),
    }
    return web.json_response(shown)


async def _status(request: web.Request) -> web.Response:
    code = int(request.match_info["code"])
    if code in (204, 304):
        return web.Response(status=code)
    return web.json_response({"code": code}, status=code)


async def _redirect(request: web.Request) -> web.Response:
    left = int(request.match_info["left"])
    goal = "/echo" if left <= 1 else f"/redirect/{left - 1}"
    return web.Response(status=302, headers={"Location": goal})


async def _redirect_to(request: web.Request) -> web.Response:
    status = int(request.query.get("status", 302))
    return web.Response(status=status, headers={"Location": request.query["url"]})


async def _raw(request: web.Request) -> web.Response:
    """What was sent as body comes back, with the content type that `as` names."""
    headers = {"Content-Type": request.query["as"]}
    return web.Response(body=await request.read(), headers=headers)


async def _twice(_: web.Request) -> web.Response:
    answer = web.json_response([])
    answer.headers.add("Set-Cookie", "a=1")
    answer.headers.add("Set-Cookie", "b=2")
    answer.headers.add("X-Seen", "one")
    answer.headers.add("X-Seen", "two")
    return answer


async def _truncated(request: web.Request) -> web.StreamResponse:
    """Promises a hundred bytes, sends ten and hangs up."""
    answer = web.StreamResponse(headers={"Content-Length": "100"})
    await answer.prepare(request)
    await answer.write(b"only these")
    assert request.transport is not None
    request.transport.close()
    return answer


async def _reset(request: web.Request) -> web.Response:
    """Hangs up without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def _garbage(request: web.Request) -> web.Response:
    """Answers with something that is not HTTP."""
    transport = cast(asyncio.Transport, request.transport)
    transport.write(b"SSH-2.0-surprise\r\n\r\n")
    transport.close()
    return web.Response()


async def _big(request: web.Request) -> web.StreamResponse:
    """`size` bytes of `as`, made while they are sent."""
    size, kind = int(request.query["size"]), request.query.get("as", "application/json")
    answer = web.StreamResponse(headers={"Content-Type": kind})
    await answer.prepare(request)
    async for piece in _pieces(size, kind):
        await answer.write(piece)
    return answer


async def _pieces(size: int, kind: str) -> AsyncIterator[bytes]:
    quote = b'"' if "json" in kind else b""
    yield quote
    left = size - 2 * len(quote)
    block = b"x" * 65_536
    while left > 0:
        yield block[:left]
        left -= len(block)
    yield quote


async def _bomb(request: web.Request) -> web.Response:
    """A small compressed body of `as` that unfolds to `size` bytes."""
    kind = request.query.get("as", "text/plain")
    quote = b'"' if "json" in kind else b""
    packed = gzip.compress(quote + b"0" * (int(request.query["size"]) - 2 * len(quote)) + quote)
    headers = {"Content-Encoding": "gzip", "Content-Type": kind}
    return web.Response(body=packed, headers=headers)


ROUTES: dict[str, Answer] = {
    "/echo": _echo,
    "/status/{code}": _status,
    "/redirect/{left}": _redirect,
    "/redirect-to": _redirect_to,
    "/raw": _raw,
    "/twice": _twice,
    "/truncated": _truncated,
    "/reset": _reset,
    "/garbage": _garbage,
    "/big": _big,
    "/bomb": _bomb,
}


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[HttpServer]:
    """A fresh server for the length of a `with`."""
    with HttpServer(tls) as server:
        yield server
