"""Workers and servers of one process that speak as if there were a wire between them (Link)."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec

from noetl.errors import ServerAway
from noetl.ports.link import ANYBODY, POLL, Answer, Call, Listener, Question, Reply

PATIENCE = 10.0
"""Seconds for an answer."""


def carried(message: Any, kind: Any) -> Any:
    """As it arrives at the other end of a wire."""
    return msgspec.json.decode(msgspec.json.encode(message), type=kind)


class Sleeper(msgspec.Struct, frozen=True, eq=False):
    """A worker that waits to be woken."""

    worker: str
    pool: str
    hungry: bool
    woken: "asyncio.Future[str]"


async def _last(answering: "list[asyncio.Task[Answer]]") -> Answer:
    answers = [await one for one in answering]
    return next((one for one in answers if one.grants), answers[-1])


class Exchange:
    """Where the servers of this process are found, and who waits to be woken."""

    def __init__(self, *, copies: int = 1) -> None:
        self._listeners: dict[str, Listener] = {}
        self._working: dict[str, set[asyncio.Task[Any]]] = {}
        self._rung: dict[str, dict[str, None]] = {}
        self._nudged: dict[str, dict[str, None]] = {}
        self._sleepers: list[Sleeper] = []
        self.copies = copies
        """How often each message arrives (T10)."""

    @property
    def servers(self) -> list[str]:
        return list(self._listeners)

    def attach(self, listener: Listener) -> "DirectNotifier":
        """From now on the server is there."""
        self._listeners[listener.name] = listener
        self._working[listener.name] = set()
        return DirectNotifier(self, listener.name)

    def detach(self, server: str) -> None:
        """The server is gone, also for those whose calls it was answering."""
        self._listeners.pop(server, None)
        for task in self._working.pop(server, set()):
            task.cancel()

    def find(self, server: str) -> Listener:
        """Raises ServerAway."""
        if server not in self._listeners:
            raise ServerAway(f"server '{server}' cannot be reached: nothing answers its calls")
        return self._listeners[server]

    def start(self, server: str, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Begins in the order of these calls, and ends with the server at the latest."""
        task = asyncio.get_running_loop().create_task(work)
        self._working[server].add(task)
        task.add_done_callback(self._working[server].discard)
        return task

    def deliver(self, call: Call, server: str) -> "asyncio.Task[Any]":
        """
        The answer to the last copy is the one that arrives, unless another brings a part: whatever
        is said again is answered as it was the first time.
        """
        answer = self.find(server).answer
        tasks = [
            self.start(server, answer(carried(call, Call), ANYBODY))
            for _ in range(max(1, self.copies))
        ]
        return tasks[0] if len(tasks) == 1 else self.start(server, _last(tasks))

    def wake_pool(self, server: str, pool: str) -> None:
        for sleeper in self._sleepers:
            if sleeper.hungry and sleeper.pool == pool and not sleeper.woken.done():
                sleeper.woken.set_result(server)
                return
        self._rung.setdefault(pool, {})[server] = None

    def wake_worker(self, server: str, worker: str) -> None:
        for sleeper in self._sleepers:
            if sleeper.worker == worker and not sleeper.woken.done():
                sleeper.woken.set_result(server)
                return
        self._nudged.setdefault(worker, {})[server] = None

    def news(self, worker: str, pool: str, *, hungry: bool) -> str | None:
        """A server that rang or nudged while nobody slept."""
        for told in (self._rung.get(pool) if hungry else None, self._nudged.get(worker)):
            if told:
                server = next(iter(told))
                del told[server]
                return server
        return None

    async def sleep(self, sleeper: Sleeper, seconds: float) -> str | None:
        """Who woke it, or None when the time was over."""
        self._sleepers.append(sleeper)
        try:
            await asyncio.wait([sleeper.woken], timeout=seconds)
        finally:
            self._sleepers.remove(sleeper)
        return sleeper.woken.result() if sleeper.woken.done() else None


class DirectNotifier:
    """See the contract of `Notifier`."""

    def __init__(self, exchange: Exchange, server: str) -> None:
        self._exchange = exchange
        self._server = server

    def wake_pool(self, pool: str, parts: int) -> None:  # noqa: ARG002
        self._exchange.wake_pool(self._server, pool)

    def wake_worker(self, worker: str) -> None:
        self._exchange.wake_worker(self._server, worker)


class DirectLink:
    """See the contract of `Link`."""

    def __init__(
        self, exchange: Exchange, *, patience: float = PATIENCE, poll: float = POLL
    ) -> None:
        self._exchange = exchange
        self._patience = patience
        self._poll = poll

    async def call(self, server: str, call: Call) -> Answer:
        answer = await self._wait(server, self._exchange.deliver(call, server), self._patience)
        return carried(answer, Answer)  # type: ignore[no-any-return]

    async def ask(self, question: Question, server: str | None = None) -> Reply:
        servers = [server] if server else self._exchange.servers
        if not servers:
            raise ServerAway("no server is there")
        reply = self._exchange.find(servers[0]).reply(carried(question, Question), ANYBODY)
        seconds = self._patience + getattr(question, "wait", 0.0)
        task = self._exchange.start(servers[0], reply)
        told = await self._wait(servers[0], task, seconds)
        return carried(told, Reply)  # type: ignore[no-any-return]

    async def wake(self, worker: str, pool: str, *, hungry: bool) -> str:
        while (server := self._exchange.news(worker, pool, hungry=hungry)) is None:
            woken = asyncio.get_running_loop().create_future()
            sleeper = Sleeper(worker, pool, hungry, woken)
            server = await self._exchange.sleep(sleeper, self._poll)
            if server is not None:
                return server
            for name in self._exchange.servers:  # none of them is forgotten for long (T4)
                self._exchange.wake_worker(name, worker)
        return server

    async def close(self) -> None:
        """There is no line that could be closed."""

    async def _wait(self, server: str, task: "asyncio.Task[Any]", seconds: float) -> Any:
        done, _ = await asyncio.wait([task], timeout=seconds)
        if not done:
            raise ServerAway(f"server '{server}' did not answer within {seconds:g} s")
        if task.cancelled():
            raise ServerAway(f"server '{server}' went away")
        fault = task.exception()
        if fault is not None:
            raise ServerAway(f"server '{server}' could not answer: {fault}")
        return task.result()
