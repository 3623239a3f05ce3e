"""A client of a server for programs with an event loop; see `Client`, which says the same."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

import aiohttp
from yarl import URL

from noetl.api.types import EventView
from noetl.client import asks
from noetl.client.answers import PATIENCE, address_of, away, headers_of, target_of, value_in
from noetl.client.asks import Ask
from noetl.client.client import PAUSES, QUIET
from noetl.client.stream import LAST, Messages, stream_ask
from noetl.errors import ServerAway

P = ParamSpec("P")
T = TypeVar("T")
LOST = (aiohttp.ClientError, OSError, TimeoutError)


class Sent(Generic[P, T]):
    """A question as a method: `await client.standing(id)` sends `asks.standing(id)`."""

    def __init__(self, make: Callable[P, Ask[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: None, owner: type["AsyncClient"]) -> Self: ...
    @overload
    def __get__(
        self, client: "AsyncClient", owner: type["AsyncClient"]
    ) -> Callable[P, Awaitable[T]]: ...
    def __get__(
        self, client: "AsyncClient | None", owner: type["AsyncClient"]
    ) -> Self | Callable[P, Awaitable[T]]:
        if client is None:
            return self

        def send(*args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
            return client.send(self._make(*args, **kwargs))

        return send


class AsyncClient:
    """`async with AsyncClient("http://127.0.0.1:8765", token="…") as client: …`."""

    def __init__(
        self, url: str, token: str | None = None, *, pauses: Sequence[float] = PAUSES
    ) -> None:
        self.url = url.rstrip("/")
        address_of(url)
        self._token = token
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

    # ── questions ────────────────────────────────────────────────────────────────────────────

    register = Sent(asks.register)
    catalog = Sent(asks.catalog)
    versions = Sent(asks.versions)
    playbook = Sent(asks.playbook)
    execute = Sent(asks.execute)
    start_many = Sent(asks.start_many)
    executions = Sent(asks.executions)
    standing = Sent(asks.standing)
    state = Sent(asks.state)
    events = Sent(asks.events)
    lines = Sent(asks.lines)
    summary = Sent(asks.summary)
    order = Sent(asks.order)
    explanation = Sent(asks.explanation)
    verified = Sent(asks.verified)
    put_credential = Sent(asks.put_credential)
    credentials = Sent(asks.credentials)
    remove_credential = Sent(asks.remove_credential)
    make_token = Sent(asks.make_token)
    tokens = Sent(asks.tokens)
    revoke_token = Sent(asks.revoke_token)
    runtime = Sent(asks.runtime)
    ready = Sent(asks.ready)

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
        try:
            return await self._exchange(ask)
        except aiohttp.ServerDisconnectedError as broken:
            if not ask.again:
                raise away(self.url, broken) from None
        except LOST as broken:
            raise away(self.url, broken) from None
        try:
            return await self._exchange(ask)
        except LOST as broken:
            raise away(self.url, broken) from None

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
        url = URL(self.url + target_of(ask), encoded=True)
        return self._session.request(
            ask.method,
            url,
            data=ask.body,
            headers=headers_of(ask, self._token),
            timeout=limit,
            allow_redirects=False,
        )
