"""A client of a server for programs with an event loop; see `Client`, which says the same."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Self, TypeVar

import aiohttp
from yarl import URL

from noetl.api.home_token import at_home
from noetl.api.types import EventView
from noetl.client.answers import PATIENCE, address_of, away, headers_of, target_of, value_in
from noetl.client.asks import Ask, AwaitedQuestions
from noetl.client.client import PAUSES, QUIET
from noetl.client.stream import LAST, Messages, stream_ask
from noetl.errors import ServerAway

T = TypeVar("T")
LOST = (aiohttp.ClientError, OSError, TimeoutError)


class AsyncClient(AwaitedQuestions):
    """`async with AsyncClient("http://127.0.0.1:8765", token="…") as client: …`."""

    def __init__(
        self, url: str, token: str | None = None, *, pauses: Sequence[float] = PAUSES
    ) -> None:
        self.url = url.rstrip("/")
        address_of(url)
        address, self._token = (url, token) if token else at_home(url)
        self._address = address.rstrip("/")
        self._pauses = pauses
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def stream(self, execution_id: str, *, after: int = 0) -> AsyncIterator[EventView]:
        """Every event after a `seq` and those that come, until the last; see `Client.stream`."""
        left = list(self._pauses)
        while True:
            try:
                async for event in self._streamed(execution_id, after):
                    after, left = event.seq, list(self._pauses)
                    yield event
                    if event.name == LAST:
                        return
            except ServerAway:
                if not left:
                    raise
            if not left:
                raise away(self.url, "the stream ended before its last event")
            pause = left.pop(0)
            await asyncio.sleep(pause)

    # ── the wire ─────────────────────────────────────────────────────────────────────────────

    async def send(self, ask: Ask[T]) -> T:
        """Put a question, and wait for its answer."""
        again = ask.again
        while True:
            try:
                return await self._exchange(ask)
            except LOST as broken:
                if not again or not isinstance(broken, aiohttp.ServerDisconnectedError):
                    raise away(self.url, broken) from None
                again = False

    async def _exchange(self, ask: Ask[T]) -> T:
        limit = aiohttp.ClientTimeout(total=None, sock_read=PATIENCE + ask.patience)
        async with self._request(ask, limit) as answer:
            return value_in(ask, answer.status, await answer.read(), self.url)

    async def _streamed(self, execution_id: str, after: int) -> AsyncIterator[EventView]:
        ask, messages = stream_ask(execution_id, after), Messages()
        limit = aiohttp.ClientTimeout(total=None, sock_connect=PATIENCE, sock_read=QUIET)
        try:
            async with self._request(ask, limit) as answer:
                if answer.status >= 400:
                    value_in(ask, answer.status, await answer.read(), self.url)
                async for piece in answer.content.iter_any():
                    for event in messages.take(piece):
                        yield event
        except LOST as broken:
            raise away(self.url, broken) from None

    def _request(self, ask: Ask[Any], limit: aiohttp.ClientTimeout) -> Any:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        url = URL(self._address + target_of(ask), encoded=True)
        return self._session.request(
            ask.method,
            url,
            data=ask.body,
            headers=headers_of(ask, self._token),
            timeout=limit,
            allow_redirects=False,
        )
