"""A worker's line to the servers over NATS (Link)."""

import asyncio
from typing import TypeVar

import msgspec

from noetl.adapters.nats.line import NatsLine, Says, silent
from noetl.adapters.nats.names import Names
from noetl.adapters.nats.requests import NatsRequests
from noetl.adapters.nats.signing import ASK, CALL, GREETING, BegunAnew, LinkSigner
from noetl.adapters.nats.wakes import NatsWakes
from noetl.errors import ServerAway
from noetl.ports.link import POLL, Answer, Call, LinkKey, Question, Reply

PATIENCE = 10.0
"""Seconds for an answer."""

Told = TypeVar("Told")

_encode = msgspec.json.Encoder().encode
_answer = msgspec.json.Decoder(Answer)
_reply = msgspec.json.Decoder(Reply)


class NatsLink:
    """See the contract of `Link`."""

    def __init__(
        self,
        url: str,
        *,
        name: str,
        says: Says = silent,
        root: str = "noetl",
        patience: float = PATIENCE,
        poll: float = POLL,
        key: LinkKey | None = None,
        pool: str = "default",
    ) -> None:
        self._names = Names(root)
        self._patience = patience
        inbox = self._names.inbox("worker", pool)
        self.line = NatsLine(url, name=name, inbox=inbox, says=says)
        self._requests = NatsRequests(self.line)
        self._signer = None if key is None else LinkSigner(key, says)
        self._greeting: dict[str, asyncio.Lock] = {}
        self._wakes = NatsWakes(self.line, self._names, f"{self.line.inbox}.woken", poll)

    async def open(self) -> None:
        """Returns when NATS is there; who waits hears of it through `says`."""
        await self._requests.open()
        await self._wakes.open()
        await self.line.open()

    async def call(self, server: str, call: Call) -> Answer:
        subject, whom = self._names.calls(server), f"server '{server}'"
        try:
            told = await self._told(CALL, server, subject, _encode(call), self._patience)
        except ServerAway:  # who takes its place rings by itself
            self._wakes.settle(server)
            raise
        self._wakes.settle(server)
        return _read(_answer, told, whom)

    async def ask(self, question: Question, server: str | None = None) -> Reply:
        payload = _encode(question)
        if server is None and (self._signer or len(payload) > self.line.largest // 2):
            server = await self._some_server()  # the parts of one question go to one
        subject = self._names.any_ask if server is None else self._names.questions(server)
        whom = "a server" if server is None else f"server '{server}'"
        seconds = self._patience + getattr(question, "wait", 0.0)
        return _read(_reply, await self._told(ASK, server, subject, payload, seconds), whom)

    async def _told(
        self, what: bytes, server: str | None, subject: str, payload: bytes, seconds: float
    ) -> bytes:
        """The answer, its signature looked at where this worker has a key (decision 0049)."""
        whom = "a server" if server is None else f"server '{server}'"
        if self._signer is None or server is None:
            return await self._requests.ask(subject, payload, seconds=seconds, whom=whom)
        for _ in range(2):
            if not self._signer.knows(server):
                await self._greet(self._signer, server, seconds)
            signed, opened = self._signer.signed(what, server, payload)
            try:
                return await self._requests.ask(
                    subject, signed, seconds=seconds, whom=whom, opened=opened
                )
            except BegunAnew:
                continue
        raise ServerAway(f"{whom} keeps restarting")

    async def _greet(self, signer: LinkSigner, server: str, seconds: float) -> None:
        """Learn the salt of a server; whoever comes meanwhile waits, and goes on in order."""
        async with self._greeting.setdefault(server, asyncio.Lock()):
            if signer.knows(server):
                return
            subject, whom = self._names.calls(server), f"server '{server}'"
            told = await self._requests.ask(subject, GREETING, seconds=seconds, whom=whom)
            signer.greeted(server, told)
        if not signer.knows(server):
            raise ServerAway(f"{whom} sent no greeting; run the same version on both sides")

    async def wake(self, worker: str, pool: str, *, hungry: bool) -> str:
        return await self._wakes.wait(worker, pool, hungry=hungry)

    async def close(self) -> None:
        await self.line.close()

    async def _some_server(self) -> str:
        told = await self._requests.ask(
            self._names.any_roll, b"", seconds=self._patience, whom="a server"
        )
        return told.decode()


def _read(decoder: "msgspec.json.Decoder[Told]", told: bytes, whom: str) -> Told:
    try:
        return decoder.decode(told)
    except msgspec.DecodeError as fault:
        raise ServerAway(
            f"{whom} sent something that cannot be read ({fault}); "
            "run the same version on both sides"
        ) from None
