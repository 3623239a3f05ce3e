"""Objects of workers that cannot reach the store itself: a server keeps and reads them (RES-1)."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from noetl.adapters.http.addresses import headers_for
from noetl.adapters.http.requests import reason_in
from noetl.ports.object_store import PIECE, Spool, StoreAway, StoreRefused

PATH = "/api/worker/results"
GONE = 410
MOVED = 421
ANSWER = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=20)
AWAY = (aiohttp.ClientError, OSError, TimeoutError)

Asking = Callable[[aiohttp.ClientSession, str], Awaitable[aiohttp.ClientResponse]]


class HttpObjectStore:
    """See `ObjectStore`. It has the name of the servers' own store, which references say."""

    def __init__(self, urls: Sequence[str], token: str | None, *, name: str) -> None:
        self.name = name
        self.place = ", ".join(urls)
        self._urls = list(urls)
        self._token = token
        self._session: aiohttp.ClientSession | None = None

    async def put(self, key: str, body: Spool) -> None:
        query = {"execution_id": key.partition("/")[0]}
        headers = {"Content-Type": "application/json", "Content-Length": str(body.size)}

        async def post(session: aiohttp.ClientSession, url: str) -> aiohttp.ClientResponse:
            return await session.post(url, params=query, headers=headers, data=body.pieces())

        async with self._asked(post) as answer:
            kept = msgspec.json.decode(await answer.read())["key"]
        if kept != key:
            raise StoreRefused(f"the server stored {kept}, which is not what was sent")

    async def get(self, key: str, start: int = 0) -> AsyncIterator[bytes]:
        query = {"store": self.name, "key": key, "start": str(start)}
        async with self._asked(lambda session, url: session.get(url, params=query)) as answer:
            async for piece in answer.content.iter_chunked(PIECE):
                yield piece

    async def keys(self, prefix: str) -> list[str]:
        """Retention is the servers' business: a worker's token removes nothing."""
        raise StoreRefused(f"a worker lists and removes no results (of {prefix.rstrip('/')})")

    async def remove(self, keys: Sequence[str]) -> int:
        raise StoreRefused(f"a worker lists and removes no results (of {len(keys)} keys)")

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @asynccontextmanager
    async def _asked(self, ask: Asking) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer of the first server that is there."""
        try:
            answer = await self._first(ask)
            async with answer:
                yield answer
        except FileNotFoundError:
            raise
        except AWAY as away:
            raise StoreAway(str(away) or type(away).__name__) from away

    async def _first(self, ask: Asking) -> aiohttp.ClientResponse:
        if self._session is None:
            self._session = aiohttp.ClientSession(headers=headers_for(self._token), timeout=ANSWER)
        away: Exception | None = None
        for url in self._urls:
            try:
                return await _checked(await ask(self._session, url + PATH))
            except FileNotFoundError:
                raise
            except (*AWAY, StoreAway) as wrong:
                away = wrong
        raise away or StoreAway("there is no address of a server")


async def _checked(answer: Any) -> aiohttp.ClientResponse:
    """The answer, unless it is a refusal."""
    if answer.status < 400:
        return answer  # type: ignore[no-any-return]
    message, _ = reason_in(await answer.read(), answer.status)
    if answer.status == GONE:
        raise FileNotFoundError(message)
    if answer.status >= 500 or answer.status == MOVED:
        raise StoreAway(message)
    raise StoreRefused(f"the server refused a result: {message}")
