"""Requests to the worker routes of servers, and what their refusals mean."""

from io import BytesIO
from typing import Any

import aiohttp
import msgspec

from noetl.adapters.http.addresses import headers_for
from noetl.errors import ServerRefused

MOVED = 421
"""The address leads to another server than the one that was meant."""
AWAY = (aiohttp.ClientError, OSError, TimeoutError)
LARGE = 262_144
JSON = {"Content-Type": "application/json"}


class Moved(Exception):
    """Another server is at this address now."""


UNSENT = (Moved, aiohttp.ClientConnectorError)
"""Nobody has heard the request: it can go to where the server is now."""


class Broken(msgspec.Struct, frozen=True):
    """What a server says in the place of an answer that it could not give."""

    fault: str


class HttpRequests:
    """One session for all addresses: connections are kept and used again."""

    def __init__(self, token: str | None) -> None:
        self._token = token
        self._session: aiohttp.ClientSession | None = None

    async def begin(
        self, url: str, path: str, body: bytes, query: dict[str, str]
    ) -> aiohttp.ClientResponse:
        """Send; returns when the answer begins. Raises Moved, ServerRefused, or one of AWAY."""
        # A large body as a file: then it is written in parts, and others have their turn.
        sent = body if len(body) < LARGE else BytesIO(body)
        answer = await self._opened().post(url + path, data=sent, params=query, headers=JSON)
        return await checked(answer)

    async def read(self, url: str, path: str, query: dict[str, str], type: Any) -> Any:
        """Ask, and take the whole answer."""
        answer = await checked(await self._opened().get(url + path, params=query))
        return msgspec.json.decode(await answer.read(), type=type)

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                headers=headers_for(self._token),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            )
        return self._session


async def checked(answer: aiohttp.ClientResponse) -> aiohttp.ClientResponse:
    """The answer, unless it is a refusal."""
    if answer.status < 400:
        return answer
    body = await answer.read()
    if answer.status == MOVED:
        raise Moved
    message, code = reason_in(body, answer.status)
    if answer.status >= 500:
        raise aiohttp.ClientPayloadError(message)
    raise ServerRefused(message, code=code, status=answer.status)


def reason_in(body: bytes, status: int) -> tuple[str, str]:
    try:
        error = msgspec.json.decode(body)["error"]
        return str(error["message"]), str(error["code"])
    except (msgspec.DecodeError, KeyError, TypeError, UnicodeError):
        return f"the server answered with status {status}", "refused"
