"""An API on loopback: a plane as small as a test needs it, or a whole one, behind a real socket."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.memory.storage import MemoryStorage
from noetl.api.serve import serve
from noetl.errors import ExecutionNotFound
from noetl.node.server import ServerNode
from noetl.ports.event_log import ExecutionRow
from noetl.ports.link import Answer, Call, Caller, Notifier, Question, Reply
from noetl.ports.result_store import ResultStore
from noetl.settings import Settings


class Deaf:
    """A dispatcher that nobody calls."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.notifiers: list[Notifier] = []

    async def answer(self, call: Call, by: Caller) -> Answer:
        del by
        return Answer(server=self.name, tidy=[call.worker])

    async def check_keeper(self, execution_id: str, by: Caller) -> None:
        """Whoever comes may store what he likes."""

    async def reply(self, question: Question, by: Caller) -> Reply:
        del by
        return Reply(error={"code": "not_found", "message": type(question).__name__})


class SmallPlane(ServerNode):
    """A plane without executions, on a home in memory: enough for workers, tokens and faults."""

    dispatcher: Any
    follow: Any
    register: Any

    def __init__(self, dispatcher: Any = None, results: ResultStore | None = None) -> None:
        kept = results or ResultStore(MemoryObjectStore())
        super().__init__(Settings(home=Path("nowhere")), MemoryStorage(), results=kept)
        self.dispatcher = dispatcher or Deaf("small")
        self.fault: Exception | None = None
        """Raised by whatever asks for executions."""
        self.waits_for: list[str] = []
        self.follow = self.followed
        self.register = self.registered

    @property
    def name(self) -> str:
        name: str = self.dispatcher.name
        return name

    async def registered(self, text: str, *, original: str | None = None) -> Any:
        raise self.fault or LookupError((text, original))

    async def execute(self, **asked: Any) -> ExecutionRow:
        raise self.fault or LookupError(asked)

    async def order(
        self, execution_id: str, kind: str, reason: str = "", *, sender: str = ""
    ) -> ExecutionRow:
        raise self.fault or LookupError((execution_id, kind, reason, sender))

    async def row(self, execution_id: str) -> ExecutionRow:
        raise self.fault or ExecutionNotFound(f"no execution '{execution_id}'")

    async def state(self, execution_id: str) -> Any:
        raise self.fault or LookupError(execution_id)

    async def summary(self, execution_id: str, *, wait: float = 0) -> dict[str, Any]:
        raise self.fault or LookupError((execution_id, wait))

    async def followed(self, execution_id: str, *, after: int = 0) -> AsyncIterator[Any]:
        raise self.fault or LookupError((execution_id, after))
        yield

    async def counts(self) -> dict[str, Any]:
        return {"leases": 3, "executions": {"running": 2}, "set_aside": {"e": "why"}}

    def health(self) -> dict[str, Any]:
        return {"live": True, "ready": not self.waits_for, "waits_for": self.waits_for}


class Served:
    """A server in the loop of the test."""

    def __init__(self, url: str, task: "asyncio.Task[None]", stop: asyncio.Event) -> None:
        self.url = url
        self.task = task
        self.stop = stop


async def begin(plane: ServerNode, *, auth: bool = False, port: int = 0) -> Served:
    """Serve until `stop` is set, or the task is cancelled: then without waiting for anybody."""
    stop = asyncio.Event()
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(
        serve(plane, "127.0.0.1", port, auth=auth, stop=stop, ready=url.set_result)
    )
    return Served(await url, task, stop)


@asynccontextmanager
async def served(plane: ServerNode, *, auth: bool = False) -> AsyncIterator[Served]:
    found = await begin(plane, auth=auth)
    try:
        yield found
    finally:
        found.stop.set()
        await found.task


@contextmanager
def served_beside(
    opening: AbstractAsyncContextManager[ServerNode], *, auth: bool = False
) -> Iterator[str]:
    """The URL of a server in a thread of its own, for tests that block."""
    loop, ready = asyncio.new_event_loop(), threading.Event()
    kept: list[Served] = []

    async def serving() -> None:
        try:
            async with opening as plane, served(plane, auth=auth) as found:
                kept.append(found)
                ready.set()
                await found.stop.wait()
        finally:
            ready.set()

    thread = threading.Thread(target=loop.run_until_complete, args=(serving(),))
    thread.start()
    assert ready.wait(600)
    try:
        yield kept[0].url
    finally:
        if kept:
            loop.call_soon_threadsafe(kept[0].stop.set)
        thread.join()
        loop.close()


def reserved() -> socket.socket:
    """A port that nobody else gets; who connects to it is refused until it is let go."""
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    return kept


class Api:
    """A client for tests: it sends what it is told and shows what came back."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self.session = session

    async def ask(self, method: str, path: str, **sent: Any) -> tuple[int, Any]:
        """Status, and the JSON or the text of the answer."""
        async with self.session.request(method, self.url + path, **sent) as answer:
            body = await answer.read()
            if answer.content_type == "application/json":
                return answer.status, msgspec.json.decode(body)
            return answer.status, body.decode()

    async def get(self, path: str, /, **query: Any) -> Any:
        """The answer to a question that must be answered."""
        status, told = await self.ask("GET", path, params=query)
        assert status == 200, told
        return told

    async def post(self, path: str, body: Any = None, **sent: Any) -> Any:
        status, told = await self.ask("POST", path, json=body, **sent)
        assert status in (200, 201), told
        return told

    async def pages(self, path: str, name: str, /, **query: Any) -> list[Any]:
        """Everything of a list, page by page."""
        found: list[Any] = []
        cursor: dict[str, str] = {}
        while True:
            page = await self.get(path, **query, **cursor)
            found += page[name]
            if page["next"] is None:
                return found
            cursor = {"cursor": page["next"]}


@asynccontextmanager
async def api_of(plane: ServerNode, *, auth: bool = False, token: str = "") -> AsyncIterator[Api]:
    """A served plane and a client of it."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with served(plane, auth=auth) as found, aiohttp.ClientSession(headers=headers) as session:
        yield Api(found.url, session)
