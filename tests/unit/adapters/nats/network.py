"""Servers and workers on one NATS, and what they said."""

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

from tests.contracts.lines import Desk
from tests.support.nats import NatsServer

from noetl.adapters.nats.library import Client, JetStreamContext
from noetl.adapters.nats.link import NatsLink
from noetl.adapters.nats.names import Names
from noetl.adapters.nats.switchboard import NatsSwitchboard

SOON = 30.0
"""Longer than anything takes: a test that hangs ends."""


class Network:
    """Opens and closes; `said` holds every line for a person."""

    def __init__(self, server: NatsServer) -> None:
        self.server = server
        self.names = Names(f"t{uuid.uuid4().hex}")
        self.said: list[str] = []
        self.heard = asyncio.Event()
        self._open: list[Any] = []

    def says(self, text: str) -> None:
        self.said.append(text)
        self.heard.set()

    async def until_said(self, part: str) -> str:
        """The first line with these words; waits for it."""
        async with asyncio.timeout(SOON):
            while True:
                for text in self.said:
                    if part in text:
                        return text
                self.heard.clear()
                await self.heard.wait()

    def link(self, *, url: str = "", patience: float = SOON, poll: float = SOON) -> NatsLink:
        link = NatsLink(
            url or self.server.url,
            name="w",
            says=self.says,
            root=self.names.root,
            patience=patience,
            poll=poll,
        )
        self._open.append(link)
        return link

    async def opened(self, *, patience: float = SOON, poll: float = SOON) -> NatsLink:
        link = self.link(patience=patience, poll=poll)
        await link.open()
        return link

    async def serve(self, desk: Desk) -> NatsSwitchboard:
        board = NatsSwitchboard(self.server.url, desk, says=self.says, root=self.names.root)
        self._open.append(board)
        await board.open()
        return board

    async def client(self) -> Client:
        """A connection beside our own."""
        client = Client()
        self._open.append(client)
        inbox = f"{self.names.inbox('worker', 'default')}.beside"
        await client.connect(self.server.url, inbox_prefix=inbox)
        return client

    async def stream(self) -> JetStreamContext:
        return (await self.client()).jetstream()

    async def close_all(self) -> None:
        for one in reversed(self._open):
            await one.close()


async def until(fact: Callable[[], Any]) -> None:
    """Ask until it is so; each question is a round trip, not a pause."""
    async with asyncio.timeout(SOON):
        while not await fact():
            pass
