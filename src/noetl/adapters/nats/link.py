"""A worker's line to the servers over NATS (Link)."""

import uuid
from typing import TypeVar

import msgspec

from noetl.adapters.nats.line import NatsLine, Says, silent
from noetl.adapters.nats.names import Names
from noetl.adapters.nats.requests import NatsRequests
from noetl.adapters.nats.wakes import NatsWakes
from noetl.errors import ServerAway
from noetl.ports.link import POLL, Answer, Call, Question, Reply

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
    ) -> None:
        self._names = Names(root)
        self._patience = patience
        self.line = NatsLine(url, name=name, says=says)
        self._requests = NatsRequests(self.line)
        self._wakes = NatsWakes(self.line, self._names, f"_INBOX.{uuid.uuid4().hex}", poll)

    async def open(self) -> None:
        """Returns when NATS is there; who waits hears of it through `says`."""
        await self._requests.open()
        await self._wakes.open()
        await self.line.open()

    async def call(self, server: str, call: Call) -> Answer:
        subject, whom = self._names.calls(server), f"server '{server}'"
        try:
            told = await self._requests.ask(
                subject, _encode(call), seconds=self._patience, whom=whom
            )
        except ServerAway:  # who takes its place rings by itself
            self._wakes.settle(server)
            raise
        self._wakes.settle(server)
        return _read(_answer, told, whom)

    async def ask(self, question: Question, server: str | None = None) -> Reply:
        payload = _encode(question)
        if server is None and len(payload) > self.line.largest // 2:
            server = await self._some_server()  # the parts of one question go to one
        subject = self._names.any_ask if server is None else self._names.questions(server)
        whom = "a server" if server is None else f"server '{server}'"
        seconds = self._patience + getattr(question, "wait", 0.0)
        told = await self._requests.ask(subject, payload, seconds=seconds, whom=whom)
        return _read(_reply, told, whom)

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
            f"{whom} says what cannot be read ({fault}); run the same version on both sides"
        ) from None
