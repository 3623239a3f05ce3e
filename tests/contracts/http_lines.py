"""The line and the result store over HTTP, as the contract suites open them."""

import asyncio
from contextlib import nullcontext
from typing import Any

import aiohttp
import pytest
from tests.support.api import Served, SmallPlane, begin, reserved, served_beside

from noetl.adapters.http.link import CALLS, QUESTIONS, HttpLink
from noetl.adapters.http.object_store import HttpObjectStore
from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.ports.link import Link, Listener, Notifier
from noetl.ports.result_store import ResultStore

PLACES = 3
"""Addresses that a link knows; servers come and go behind them."""


class Reception:
    """A listener with bells, as the dispatcher has them."""

    def __init__(self, listener: Listener) -> None:
        self.name = listener.name
        self.answer = listener.answer
        self.reply = listener.reply
        self.notifiers: list[Notifier] = []


class HttpLines:
    """Servers behind a few ports of loopback."""

    carries_bytes = True

    def __init__(self, _: pytest.FixtureRequest) -> None:
        self._free = [reserved() for _ in range(PLACES)]
        self._urls = [f"http://127.0.0.1:{kept.getsockname()[1]}" for kept in self._free]
        self._servers: dict[str, Served] = {}
        self._links: list[HttpLink] = []

    async def serve(self, listener: Listener) -> Notifier:
        kept = self._free.pop(0)
        port = kept.getsockname()[1]
        kept.close()
        reception = Reception(listener)
        self._servers[listener.name] = await begin(SmallPlane(reception), port=port)
        return reception.notifiers[0]

    async def link(self, *, patience: float = 20.0, poll: float = 0.05) -> Link:
        link = HttpLink(self._urls, patience=patience, poll=poll)
        self._links.append(link)
        return link

    async def vanish(self, server: str) -> None:
        gone = self._servers.pop(server)
        gone.task.cancel()
        await asyncio.gather(gone.task, return_exceptions=True)

    async def put(self, server: str, rubbish: bytes) -> None:
        url = self._servers[server].url
        async with aiohttp.ClientSession() as session:
            for path in (CALLS, QUESTIONS):
                async with session.post(
                    url + path, data=rubbish, headers={"Content-Type": "application/json"}
                ) as answer:
                    assert 400 <= answer.status < 500, await answer.text()

    async def repeat(self, copies: int) -> None:
        for link in self._links:
            multiply(link.requests, copies)

    async def close_all(self) -> None:
        for link in self._links:
            await link.close()
        for server in list(self._servers):
            await self.vanish(server)
        for kept in self._free:
            kept.close()


def multiply(requests: Any, copies: int) -> None:
    once = requests.begin

    async def often(*given: Any) -> Any:
        for _ in range(copies - 1):
            await (await once(*given)).read()
        return await once(*given)

    requests.begin = often


class RemovableHttpStore(HttpObjectStore):
    """Retention runs beside the store itself, as it does in a server."""

    def __init__(self, url: str, behind: MemoryObjectStore) -> None:
        super().__init__([url], None, name=behind.name)
        self.keys = behind.keys  # type: ignore[method-assign]
        self.remove = behind.remove  # type: ignore[method-assign]


def over_http(request: pytest.FixtureRequest) -> RemovableHttpStore:
    behind = MemoryObjectStore()
    serving = served_beside(nullcontext(SmallPlane(results=ResultStore(behind))))
    url = serving.__enter__()
    request.addfinalizer(lambda: serving.__exit__(None, None, None))
    return RemovableHttpStore(url, behind)
