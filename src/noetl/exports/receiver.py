"""Who takes an export over HTTP: one request after the other, each until it is taken."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Self

import aiohttp
from yarl import URL

from noetl.errors import ReceiverUnavailable

PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before each further attempt."""
LONGEST_PAUSE = 30.0
TIMEOUT = aiohttp.ClientTimeout(total=120, sock_connect=10)
BUSY = frozenset({429, 502, 503, 504})
"""Answers that ask to come again."""
MOST_SHOWN = 500

Pause = Callable[[float], Awaitable[None]]


class Receiver:
    """Sends bodies to one address. Nothing is left out: a body is taken, or the export ends."""

    def __init__(
        self,
        url: URL,
        *,
        content_type: str,
        headers: Mapping[str, str] | None = None,
        pauses: Sequence[float] = PAUSES,
        pause: Pause = asyncio.sleep,
    ) -> None:
        self.url = url
        self.shown = shown_url(url)
        self._headers = {"Content-Type": content_type, **(headers or {})}
        self._pauses = pauses
        self._pause = pause
        self._session: aiohttp.ClientSession | None = None
        self._met = False

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=TIMEOUT, headers=self._headers)
        return self

    async def __aexit__(self, *_fault: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def send(self, body: bytes, query: Mapping[str, str] | None = None) -> bytes:
        """
        Send one body; the answer is what the receiver said.

        A receiver that is busy, or gone after it was met, is waited for. One that was never there
        is most likely a wrong address: that is said at once.
        """
        attempts = 0
        while True:
            attempts += 1
            try:
                return await self._attempt(body, query or {})
            except Busy as busy:
                if attempts > len(self._pauses) or not self._met:
                    raise ReceiverUnavailable(
                        f"{busy} ({attempts} attempt{'s' * (attempts > 1)}); check the address "
                        "and that it runs, then export again: ids stay the same"
                    ) from None
                wait = max(self._pauses[attempts - 1], busy.after)
            await self._pause(min(wait, LONGEST_PAUSE))

    async def _attempt(self, body: bytes, query: Mapping[str, str]) -> bytes:
        assert self._session is not None, "opened by `async with`"
        try:
            async with self._session.post(
                self.url.update_query(query), data=body, allow_redirects=False
            ) as answer:
                self._met = True
                said = await answer.read()
                self._judge(answer, said)
                return said
        except TimeoutError:
            raise Busy(f"{self.shown} did not answer in time") from None
        except aiohttp.InvalidURL:
            raise ReceiverUnavailable(
                f"'{self.shown}' is not an address; expected http://…"
            ) from None
        except (aiohttp.ClientError, OSError) as wrong:
            raise Busy(f"{self.shown} cannot be reached: {reason_of(wrong)}") from None

    def _judge(self, answer: aiohttp.ClientResponse, said: bytes) -> None:
        # ClickHouse begins its answer before it is done; a later failure is told by this header.
        late = "X-ClickHouse-Exception-Code" in answer.headers
        if answer.status < 300 and not late:
            return
        words = " ".join(said[: MOST_SHOWN * 4].decode("utf-8", "replace").split())[:MOST_SHOWN]
        sentence = f"{self.shown} answered {answer.status} {answer.reason or ''}".rstrip()
        if words:
            sentence = f"{sentence}: {words}"
        if answer.status in BUSY:
            raise Busy(sentence, after=seconds_of(answer.headers.get("Retry-After", "")))
        raise ReceiverUnavailable(
            f"{sentence}; correct what it complains about, then export again: ids stay the same"
        )


class Busy(Exception):
    """Not now; `after` so many seconds perhaps."""

    def __init__(self, sentence: str, *, after: float = 0.0) -> None:
        super().__init__(sentence)
        self.after = after


def seconds_of(text: str) -> float:
    """The seconds of a `Retry-After`; a date counts as none."""
    return float(text) if text.isdecimal() else 0.0


def shown_url(url: URL) -> str:
    """The address without user and password, and without a query, which may hold them too."""
    return str(url.with_user(None).with_query(None))


def reason_of(wrong: Exception) -> str:
    """The innermost reason; never the whole address, which may hold a secret."""
    if isinstance(wrong, aiohttp.ClientResponseError):
        return f"its answer is not HTTP ({wrong.message.splitlines()[0]})"
    inner = getattr(wrong, "os_error", None) or wrong
    reason = getattr(inner, "strerror", None)
    return reason.lower() if reason else str(inner) or type(inner).__name__
