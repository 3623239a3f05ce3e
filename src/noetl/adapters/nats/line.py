"""One connection to NATS that comes back by itself, with all that is listened to on it."""

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from noetl.adapters.nats.library import FAULTS, Client, Msg, errors, reason_of
from noetl.adapters.nats.shortcut import hear_now, write_now, writer_of

Says = Callable[[str], None]
Hear = Callable[[Msg], None]

CONNECT = 5
PAUSE = 0.25
"""Seconds between two tries to connect."""
AGAIN = 0.1
PING = 5
"""Seconds between two looks whether the server is still there; the third that is silent ends it."""
LOOK = 0.5
"""Seconds between two looks whether the library has given the connection up."""


def silent(_: str) -> None:
    """Nobody wants to know."""


def place_of(url: str) -> str:
    """Host and port for messages; never the password."""
    parts = urlsplit(url if "://" in url else f"nats://{url}")
    return f"{parts.hostname}:{parts.port or 4222}"


class Ear:
    """
    Hears every message of a subscription in the moment in which it is read.

    The library takes it for the future of a single answer, and so spares it a queue and a task
    per message: a quarter of the processor time of a request. It must not raise: the library
    would stop reading.
    """

    def __init__(self, hear: Hear, complain: Callable[[BaseException], None]) -> None:
        self._hear = hear
        self._complain = complain

    def cancelled(self) -> bool:
        return False

    def set_result(self, message: Msg) -> None:
        try:
            self._hear(message)
        except Exception as fault:  # promise 7: rubbish ends nothing
            self._complain(fault)


class NatsLine:
    """Open until `close`. While NATS is away `up` is not set, and what is published is lost."""

    def __init__(self, url: str, *, name: str, inbox: str, says: Says = silent) -> None:
        self._url = url
        self._name = name
        self._says = says
        self._ears: list[tuple[str, str, Hear]] = []
        self._client: Client | None = None
        self._told = ""
        self._tasks: set[asyncio.Task[None]] = set()
        self.place = place_of(url)
        self.inbox = f"{inbox}.{uuid.uuid4().hex}"
        """Answers of this line come below it: permissions can tell whose they are."""
        self.closed = False
        self.up = asyncio.Event()
        self.losses: list[Callable[[], None]] = []
        """Called when the connection is gone: answers under way do not come any more."""

    @property
    def client(self) -> Client:
        """The connection as it is now; ask for it each time."""
        if self._client is None:
            raise errors.ConnectionClosedError
        return self._client

    @property
    def largest(self) -> int:
        """Bytes that one message may have, headers included."""
        return 1024 * 1024 if self._client is None else int(self._client.max_payload)

    async def open(self) -> None:
        """Wait for NATS, however long it takes, and say so."""
        while not self.closed:
            try:
                await self._connect()
                return
            except FAULTS as fault:
                self.complain(fault)
            await asyncio.sleep(PAUSE)

    async def _connect(self) -> None:
        """
        One client for one connection. The library can make a connection anew by itself; then what
        reads and pings the old one may live on, or it waits for the old one to take what was
        written, which a line that is silent never does.
        """
        client = Client()
        try:
            await client.connect(
                self._url,
                name=self._name,
                inbox_prefix=self.inbox,
                connect_timeout=CONNECT,
                reconnect_time_wait=PAUSE,  # type: ignore[arg-type]
                allow_reconnect=False,
                max_reconnect_attempts=-1,  # while nothing listens there
                ping_interval=PING,
                # What is said while the line is down is said again, by whoever said it.
                pending_size=0,
                error_cb=self._complain,
                closed_cb=self._end,
            )
            hear_now(client, Ear)
            for subject, queue, hear in self._ears:
                await self._subscribe(client, subject, queue, hear)
            # The library's first ping may overtake what waits to be written; the second cannot.
            await client.flush(CONNECT)
            await client.flush(CONNECT)
            if not client.is_connected:  # something else came before the answer to its ping
                raise errors.ConnectionClosedError
        except BaseException:
            abort(client)
            with suppress(*FAULTS):
                await client.close()
            raise
        self._client = client
        self._regain()
        self.start(self._watch(client))

    async def _watch(self, client: Client) -> None:
        """Until the library has closed it: the line is lost then, and made anew."""
        while client.is_connected:
            await asyncio.sleep(LOOK)
        self._lose()  # also where it cannot close: it waits for what was written to be taken
        self._client = None
        abort(client)
        await self.open()

    async def listen(self, subject: str, hear: Hear, *, queue: str = "") -> None:
        """From now on, also on every connection that follows this one; `hear` must be quick."""
        self._ears.append((subject, queue, hear))
        if self._client is not None and not self._client.is_closed:
            await self._subscribe(self._client, subject, queue, hear)

    async def publish(
        self,
        subject: str,
        payload: bytes,
        *,
        reply: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:
        """Raises one of FAULTS when there is no line."""
        client = self.client
        if headers or not write_now(client, subject, payload, reply):
            await client.publish(subject, payload, reply, headers)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it in the background; it ends with the line at the latest."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def complain(self, fault: BaseException, hint: str = "") -> None:
        """Say it, unless it was the last thing said."""
        reason = reason_of(fault) + hint
        if reason != self._told and not self.closed:
            self._told = reason
            wait = "" if self.up.is_set() else "waiting for "
            self._says(f"{wait}NATS at {self.place}: {reason}")

    async def close(self) -> None:
        self.closed = True
        self.up.clear()
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            # The library swallows an order to stop that comes together with an answer.
            await asyncio.wait(self._tasks, timeout=AGAIN)
        if self._client is not None:
            with suppress(*FAULTS):
                await self._client.close()

    async def _subscribe(self, client: Client, subject: str, queue: str, hear: Hear) -> None:
        ear: Any = Ear(hear, self.complain)
        await client.subscribe(subject, queue, future=ear)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            self.complain(fault)

    async def _complain(self, fault: Exception) -> None:
        self.complain(fault)

    async def _end(self) -> None:
        """The library has closed a connection; one that never was the line is none to lose."""
        if self._client is not None and self._client.is_closed:
            self._lose()

    def _lose(self) -> None:
        if self.closed or not self.up.is_set():
            return
        self.up.clear()
        self._told = ""
        self._says(f"the connection to NATS at {self.place} is lost; trying again")
        for lost in self.losses:
            lost()

    def _regain(self) -> None:
        if self._told or not self.up.is_set():
            self._says(f"connected to NATS at {self.place}")
        self._told = ""
        self.up.set()


def abort(client: Client) -> None:
    """End its connection without waiting for what was written to it; the library cannot."""
    writer = writer_of(client)
    if writer is not None:
        writer.transport.abort()
