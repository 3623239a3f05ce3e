"""A way to the database that loses answers, holds questions, and breaks off when told to."""

import asyncio
from typing import Self

import msgspec
from tests.support.postgres import Database

CHUNK = 65_536


class Line:
    """One connection through the proxy."""

    def __init__(self, proxy: "Proxy", client: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self.client = client
        self.held = bytearray()
        self.server: asyncio.StreamWriter
        self.answered = asyncio.Event()
        """Set by an answer to what was held."""

    async def questions(self, reader: asyncio.StreamReader) -> None:
        while chunk := await reader.read(CHUNK):
            if self._proxy.holding:
                self.held += chunk
                self._proxy.holds.set()
            else:
                self.server.write(chunk)

    async def answers(self, reader: asyncio.StreamReader) -> None:
        while chunk := await reader.read(CHUNK):
            if not self._proxy.deaf and not self.client.is_closing():
                self.client.write(chunk)
            if self.held:
                self.answered.set()
        self.client.close()


class Proxy:
    """
    Between a home and its server.

    `deaf`: what the server answers is lost. `holding`: what the home asks does not arrive yet.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lines: list[Line] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Server
        self.deaf = self.holding = False
        self.holds = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._listening = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listening.close()
        for line in self._lines:
            line.client.close()
            line.server.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._listening.wait_closed()

    @property
    def database(self) -> Database:
        """The same database, by way of this proxy."""
        port = int(self._listening.sockets[0].getsockname()[1])
        return msgspec.structs.replace(self._database, port=port)

    def cut(self) -> list[Line]:
        """Break off towards the home; the server does not notice. The lines that were cut."""
        lines = [line for line in self._lines if not line.client.is_closing()]
        for line in lines:
            line.client.close()
        self.deaf = self.holding = False
        return lines

    async def release(self, lines: list[Line]) -> None:
        """Let arrive what was held, and wait until the server has answered to it."""
        for line in lines:
            if line.held:
                line.server.write(bytes(line.held))
                await line.answered.wait()
            line.server.close()

    async def _accept(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        line = Line(self, client)
        answers, line.server = await asyncio.open_connection(
            self._database.host, self._database.port
        )
        self._lines.append(line)
        for pump in (line.questions(reader), line.answers(answers)):
            task = asyncio.ensure_future(pump)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
