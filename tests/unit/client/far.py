"""A server on loopback that answers what a test tells it to, and both clients asked alike."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from aiohttp import web
from tests.support.app_server import serve

from noetl.client.async_client import AsyncClient
from noetl.client.client import Client

NO_PAUSES = (0.0, 0.0)
Reply = web.StreamResponse | tuple[int, Any]
Respond = Callable[[web.Request], Reply]


class Far:
    """What was asked, and what is answered, one after the other; the last answer stays."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self.replies: list[Respond] = []

    def will(self, *replies: tuple[int, Any] | Respond) -> None:
        self.replies = [reply if callable(reply) else always(reply) for reply in replies]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(
            (request.method, str(request.rel_url), dict(request.headers), await request.read())
        )
        respond = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        told = respond(request)
        if isinstance(told, web.StreamResponse):
            return told
        status, value = told
        body = value if isinstance(value, bytes) else msgspec.json.encode(value)
        return web.Response(status=status, body=body, content_type="application/json")


def always(reply: tuple[int, Any]) -> Respond:
    return lambda _: reply


@contextmanager
def far() -> Iterator[Far]:
    """A server for one test."""
    server, application = Far(), web.Application()
    application.router.add_route("*", "/{path:.*}", server.answer)
    with serve(application) as server.url:
        yield server


def cut(request: web.Request) -> web.StreamResponse:
    """A connection that breaks before the answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def ask_sync(url: str, token: str | None, question: str, *args: Any, **more: Any) -> Any:
    with Client(url, token) as client:
        return getattr(client, question)(*args, **more)


def ask_async(url: str, token: str | None, question: str, *args: Any, **more: Any) -> Any:
    async def run() -> Any:
        async with AsyncClient(url, token) as client:
            return await getattr(client, question)(*args, **more)

    return asyncio.run(run())


def streamed_sync(url: str, execution_id: str, after: int = 0) -> list[Any]:
    with Client(url, pauses=NO_PAUSES) as client:
        return list(client.stream(execution_id, after=after))


def streamed_async(url: str, execution_id: str, after: int = 0) -> list[Any]:
    async def run() -> list[Any]:
        async with AsyncClient(url, pauses=NO_PAUSES) as client:
            return [event async for event in client.stream(execution_id, after=after)]

    return asyncio.run(run())
