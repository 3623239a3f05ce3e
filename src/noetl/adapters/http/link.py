"""A worker's line to servers over HTTP, where there is no queue (`ports.link.Link`)."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from noetl.adapters.http.addresses import addresses_in
from noetl.adapters.http.object_store import HttpObjectStore
from noetl.adapters.http.requests import AWAY, UNSENT, Broken, HttpRequests, Moved
from noetl.errors import ServerAway, ServerRefused
from noetl.ports.link import POLL, Answer, Call, Question, Reply
from noetl.ports.result_store import ResultStore

PATIENCE = 20.0
"""Seconds for an answer."""
LOOK = 5.0
"""Seconds for a server to say its name."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two tries to reach a server that is away."""
BROKEN = b'{"fault":'

CALLS = "/api/worker/calls"
QUESTIONS = "/api/worker/questions"
WAKE = "/api/worker/wake"
HELLO = "/api/worker/hello"

Sleep = tuple[str, str, bool]
"""Worker, pool, whether it is hungry."""


class Hello(msgspec.Struct, frozen=True):
    """Whom an address leads to."""

    server: str
    store: str = ""


class HttpLink:
    """
    See the contract of `Link`. Servers are found by their names, behind one address each.

    A server's answer to a call begins when the call has its place in the order, and ends after
    the commit. The next call is sent when the answer to the last has begun: so they arrive in
    order, and many are under way.
    """

    def __init__(
        self,
        urls: Sequence[str],
        token: str | None = None,
        *,
        patience: float = PATIENCE,
        poll: float = POLL,
    ) -> None:
        self._urls = list(urls)
        self._patience = patience
        self._poll = poll
        self.requests = HttpRequests(token)
        self._found: dict[str, str] = {}
        """Name of a server → its address."""
        self._turns: dict[str, asyncio.Lock] = {}
        self._sleeping: dict[Sleep, dict[str, asyncio.Task[str]]] = {}

    # ── calls and questions ──────────────────────────────────────────────────────────────────

    async def call(self, server: str, call: Call) -> Answer:
        body = msgspec.json.encode(call)
        return await self._answer(server, CALLS, body, Answer, self._patience)  # type: ignore[no-any-return]

    async def ask(self, question: Question, server: str | None = None) -> Reply:
        body = msgspec.json.encode(question)
        seconds = self._patience + getattr(question, "wait", 0.0)
        if server is None:
            server = await self._any()
        return await self._answer(server, QUESTIONS, body, Reply, seconds)  # type: ignore[no-any-return]

    async def _answer(self, server: str, path: str, body: bytes, kind: Any, seconds: float) -> Any:
        try:
            async with asyncio.timeout(seconds):
                # First come, first served: asyncio's lock keeps the order of those who wait.
                async with self._turns.setdefault(server, asyncio.Lock()):
                    begun = await self._begin(server, path, body)
                text = await begun.read()
        except TimeoutError:
            raise ServerAway(f"server '{server}' did not answer within {seconds:g} s") from None
        except AWAY as away:
            self._found.pop(server, None)
            raise ServerAway(
                f"server '{server}' went away: {away or type(away).__name__}"
            ) from away
        if text.startswith(BROKEN):
            said = msgspec.json.decode(text, type=Broken).fault
            raise ServerAway(f"server '{server}' could not answer: {said}")
        return msgspec.json.decode(text, type=kind)

    async def _begin(self, server: str, path: str, body: bytes) -> Any:
        for url in (self._found.get(server), None):
            url = url or await self._look_for(server)
            try:
                return await self.requests.begin(url, path, body, {"server": server})
            except UNSENT:
                self._found.pop(server, None)
        raise away(server)

    async def _look_for(self, server: str) -> str:
        await self._look_around()
        if server not in self._found:
            raise away(server)
        return self._found[server]

    async def _any(self) -> str:
        if not self._found:
            await self._look_around()
        if not self._found:
            raise ServerAway("no server is there")
        return next(iter(self._found))

    async def _look_around(self) -> None:
        """Ask every address who is there."""
        await asyncio.gather(*(self._greet(url) for url in self._urls))

    async def _greet(self, url: str) -> None:
        try:
            async with asyncio.timeout(min(LOOK, self._patience)):
                hello = await self.requests.read(url, HELLO, {}, Hello)
        except (*AWAY, Moved):
            return
        self._found[hello.server] = url

    # ── waking ───────────────────────────────────────────────────────────────────────────────

    async def wake(self, worker: str, pool: str, *, hungry: bool) -> str:
        # A question with the other appetite would take a ring that is not for it.
        self._give_up((worker, pool, not hungry))
        asked = self._sleeping.setdefault((worker, pool, hungry), {})
        for url in self._urls:
            if url not in asked:
                asked[url] = asyncio.create_task(self._sleep(url, worker, pool, hungry=hungry))
        await asyncio.wait(asked.values(), return_when=asyncio.FIRST_COMPLETED)
        url = next(url for url, task in asked.items() if task.done())
        return asked.pop(url).result()

    async def _sleep(self, url: str, worker: str, pool: str, *, hungry: bool) -> str:
        """One question to one server: answered by a ring, or after a poll."""
        query = {"worker": worker, "pool": pool, "hungry": str(hungry).lower()}
        query["wait"] = f"{self._poll:g}"
        pause = FIRST_PAUSE
        while True:
            try:
                async with asyncio.timeout(self._poll + self._patience):
                    woken = await self.requests.read(url, WAKE, query, Hello)
            except (*AWAY, Moved):
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            self._found[woken.server] = url
            return str(woken.server)

    def _give_up(self, sleep: Sleep) -> None:
        for task in self._sleeping.pop(sleep, {}).values():
            task.cancel()

    async def close(self) -> None:
        tasks = [task for asked in self._sleeping.values() for task in asked.values()]
        for sleep in list(self._sleeping):
            self._give_up(sleep)
        for task in tasks:
            with suppress(asyncio.CancelledError, ServerRefused):
                await task
        await self.requests.close()


class Where(Protocol):
    """The settings that are asked for here."""

    @property
    def server(self) -> str | None: ...
    @property
    def token(self) -> str | None: ...


def away(server: str) -> ServerAway:
    return ServerAway(f"server '{server}' cannot be reached: none of the addresses leads to it")


async def open_http(
    settings: Where, *, says: Callable[[str], None]
) -> tuple[HttpLink, ResultStore]:
    """The line and the results of a worker without a queue; waits until a server answers."""
    urls = addresses_in(settings.server)
    link = HttpLink(urls, settings.token)
    try:
        hello = await awaited_hello(link, urls, says)
    except BaseException:
        await link.close()
        raise
    return link, ResultStore(HttpObjectStore(urls, settings.token, name=hello.store))


async def awaited_hello(link: HttpLink, urls: Sequence[str], says: Callable[[str], None]) -> Hello:
    pause, told = FIRST_PAUSE, False
    while (hello := await first_hello(link, urls)) is None:
        if not told:
            says(f"no server answers at {', '.join(urls)}: waiting for one")
            told = True
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
    return hello


async def first_hello(link: HttpLink, urls: Sequence[str]) -> Hello | None:
    for url in urls:
        try:
            async with asyncio.timeout(LOOK):
                hello: Hello = await link.requests.read(url, HELLO, {}, Hello)
                return hello
        except (*AWAY, Moved):
            continue
    return None
