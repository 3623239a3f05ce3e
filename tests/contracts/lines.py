"""Every adapter between workers and servers, as the contract suite opens them."""

import asyncio
import uuid
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import pytest
from tests.contracts.http_lines import HttpLines
from tests.support.direct_link import DirectLink, Exchange
from tests.support.nats import NatsServer

from noetl.adapters.nats.library import Client
from noetl.adapters.nats.link import NatsLink
from noetl.adapters.nats.names import Names
from noetl.adapters.nats.switchboard import NatsSwitchboard
from noetl.ports.link import (
    ANYBODY,
    Answer,
    Call,
    Caller,
    Link,
    LinkKey,
    Listener,
    Notifier,
    Question,
    Reply,
)

KEY = LinkKey("t:one", b"k" * 32, Caller("tag", "default"))


class Lines(Protocol):
    """A network of one adapter; `close_all` closes what a test opened on it."""

    carries_bytes: bool
    """Whether anybody can put any bytes on it."""

    async def serve(self, listener: Listener) -> Notifier:
        """The server is there from now on."""

    async def link(self, *, patience: float = 20.0, poll: float = 0.05) -> Link: ...

    async def vanish(self, server: str) -> None:
        """The server is gone, without a word."""

    async def put(self, server: str, rubbish: bytes) -> None:
        """Lay these bytes where the server listens."""

    async def repeat(self, copies: int) -> None:
        """From now on what links say arrives that many times."""

    async def close_all(self) -> None: ...


class DirectLines:
    """Within the process."""

    carries_bytes = False

    def __init__(self, _: pytest.FixtureRequest) -> None:
        self._exchange = Exchange()

    async def serve(self, listener: Listener) -> Notifier:
        return self._exchange.attach(listener)

    async def link(self, *, patience: float = 20.0, poll: float = 0.05) -> Link:
        return DirectLink(self._exchange, patience=patience, poll=poll)

    async def vanish(self, server: str) -> None:
        self._exchange.detach(server)

    async def put(self, server: str, rubbish: bytes) -> None:
        raise AssertionError(f"there are no bytes here for {server}: {rubbish!r}")

    async def repeat(self, copies: int) -> None:
        self._exchange.copies = copies

    async def close_all(self) -> None:
        for server in self._exchange.servers:
            self._exchange.detach(server)


class NatsLines:
    """Below a root of its own on the NATS of the test process."""

    carries_bytes = True
    signed: ClassVar[dict[str, Any]] = {}

    def __init__(self, request: pytest.FixtureRequest) -> None:
        server: NatsServer = request.getfixturevalue("nats_server")
        self._url = server.url
        self.names = Names(f"t{uuid.uuid4().hex}")
        self._boards: dict[str, NatsSwitchboard] = {}
        self._links: list[NatsLink] = []

    async def serve(self, listener: Listener) -> Notifier:
        board = NatsSwitchboard(self._url, listener, root=self.names.root, **self.signed)
        self._boards[listener.name] = board
        await board.open()
        return board.notifier

    async def link(self, *, patience: float = 20.0, poll: float = 0.05) -> Link:
        link = NatsLink(
            self._url,
            name="test",
            root=self.names.root,
            patience=patience,
            poll=poll,
            key=KEY if self.signed else None,
        )
        self._links.append(link)
        await link.open()
        return link

    async def vanish(self, server: str) -> None:
        await self._boards.pop(server).line.close()

    async def put(self, server: str, rubbish: bytes) -> None:
        client = Client()
        await client.connect(self._url)
        for subject in (self.names.calls(server), self.names.questions(server)):
            for reply in ("", "nobody.waits", client.new_inbox()):
                await client.publish(subject, rubbish, reply)
                await client.publish(subject, rubbish, reply, {"Noetl-Part": "x/0"})
        await client.close()

    async def repeat(self, copies: int) -> None:
        for link in self._links:
            _multiply(link.line, copies)

    async def close_all(self) -> None:
        for link in self._links:
            await link.close()
        for board in self._boards.values():
            await board.close()


async def the_key(name: str) -> LinkKey | None:
    return KEY if name == KEY.name else None


class SignedNatsLines(NatsLines):
    """The same where the queue is not trusted (decision 0049)."""

    signed: ClassVar[dict[str, Any]] = {"keys": the_key, "demands": True}


def _multiply(line: Any, copies: int) -> None:
    once = line.publish

    async def often(*given: Any, **named: Any) -> None:
        for _ in range(copies):
            await once(*given, **named)

    line.publish = often


LINES: dict[str, Callable[[pytest.FixtureRequest], Lines]] = {
    "memory": DirectLines,
    "nats": NatsLines,
    "signed nats": SignedNatsLines,
    "http": HttpLines,
}
"""A new adapter adds its line here."""


class Desk:
    """A server that remembers what it heard and says what a test wants."""

    def __init__(self, name: str = "s1") -> None:
        self.name = name
        self.heard: list[Call] = []
        self.asked: list[Question] = []
        self.held: dict[int, asyncio.Event] = {}
        """By the number of free slots in a call: answered when the event is set."""
        self.refusal = ""
        self.fault: Exception | None = None
        self.came = asyncio.Event()
        self.by = ANYBODY

    async def answer(self, call: Call, by: Caller) -> Answer:
        self.by = by
        self.heard.append(call)
        self.came.set()
        if call.free in self.held:
            await self.held[call.free].wait()
        if self.fault is not None:
            raise self.fault
        return Answer(server=self.name, refusal=self.refusal, tidy=[str(call.free)])

    async def reply(self, question: Question, by: Caller) -> Reply:
        self.by = by
        self.asked.append(question)
        if self.fault is not None:
            raise self.fault
        return Reply(error={"code": "not_found", "message": self.name})


def call(free: int = 0, **more: Any) -> Call:
    return Call(worker="w", pool="default", version="1", free=free, **more)
