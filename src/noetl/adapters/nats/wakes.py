"""What wakes a worker: rings for its pool, nudges for itself, and answers to its roll calls."""

import asyncio
from contextlib import suppress

from noetl.adapters.nats.library import FAULTS, JetStreamContext, Msg
from noetl.adapters.nats.line import NatsLine
from noetl.adapters.nats.names import Names
from noetl.adapters.nats.stream import pull
from noetl.ports.link import POLL

FETCH = 2.0
"""Seconds after which a worker pulls again: a pull that a restart of NATS swallowed."""
PAUSE = 0.5
"""Seconds between two tries to reach JetStream."""


class NatsWakes:
    """
    Rings are taken from the queue only for who is hungry: one that comes when the worker had its
    fill goes back at once, to wake another.
    """

    def __init__(self, line: NatsLine, names: Names, inbox: str, poll: float) -> None:
        self._line = line
        self._names = names
        self._inbox = inbox
        self._poll = poll
        self._rings: dict[str, list[Msg]] = {}
        self._taken: dict[str, list[Msg]] = {}
        self._nudges: dict[str, None] = {}
        self._hungry: set[str] = set()
        self._pulled: set[str] = set()
        self._listened: set[str] = set()
        self._news = asyncio.Event()
        self._appetite = asyncio.Event()

    async def open(self) -> None:
        await self._line.listen(self._inbox, self._hear_nudge)

    async def wait(self, worker: str, pool: str, *, hungry: bool) -> str:
        """See `Link.wake`."""
        await self._listen(worker)
        if hungry:
            self._grow_hungry(pool)
        else:
            self._give_back()
        try:
            while (server := self._next()) is None:
                self._news.clear()
                try:
                    async with asyncio.timeout(self._poll):
                        await self._news.wait()
                except TimeoutError:
                    await self._call_roll()
        finally:
            self._hungry.discard(pool)
        return server

    def settle(self, server: str) -> None:
        """The worker has called this server: its rings have done their work."""
        if server in self._taken:
            self._line.start(self._acknowledge(self._taken.pop(server)))

    async def _listen(self, worker: str) -> None:
        if worker not in self._listened:
            self._listened.add(worker)
            await self._line.listen(self._names.nudges(worker), self._hear_nudge)

    def _grow_hungry(self, pool: str) -> None:
        self._hungry.add(pool)
        self._appetite.set()
        if pool not in self._pulled:
            self._pulled.add(pool)
            self._line.start(self._pull(pool))

    def _next(self) -> str | None:
        if self._rings:
            server = next(iter(self._rings))
            self._taken[server] = self._rings.pop(server)
            self._nudges.pop(server, None)
            return server
        if self._nudges:
            server = next(iter(self._nudges))
            del self._nudges[server]
            return server
        return None

    def _give_back(self) -> None:
        while self._rings:
            _, rings = self._rings.popitem()
            self._line.start(self._refuse(rings))

    def _hear_nudge(self, message: Msg) -> None:
        if message.data:  # none: nobody answered the roll call
            self._nudges[message.data.decode()] = None
            self._news.set()

    async def _hear_ring(self, pool: str, ring: Msg) -> None:
        if pool not in self._hungry:
            await self._refuse([ring])
            return
        try:
            server = ring.data.decode()
        except UnicodeDecodeError:  # promise 7: rubbish ends nothing, and wakes nobody else
            await self._acknowledge([ring])
            return
        self._rings.setdefault(server, []).append(ring)
        self._news.set()

    async def _call_roll(self) -> None:
        """Each server that there is answers, and gets its call: no lost ring stays lost (T4)."""
        try:
            await self._line.publish(self._names.any_roll, b"", reply=self._inbox)
        except FAULTS as fault:
            self._line.complain(fault)

    async def _pull(self, pool: str) -> None:
        queue: JetStreamContext.PullSubscription | None = None
        while not _ending():
            while pool not in self._hungry:
                self._appetite.clear()
                await self._appetite.wait()
            await self._line.up.wait()
            try:
                queue = queue or await pull(self._line, self._names, pool)
                for ring in await queue.fetch(1, timeout=FETCH):
                    await self._hear_ring(pool, ring)
            except TimeoutError:
                continue
            except (*FAULTS, asyncio.CancelledError) as fault:
                # The library cancels who waits when it gives up a connection.
                if _ending():
                    raise
                await self._leave(queue)
                queue = None  # lost or wiped: it is made again (T5)
                self._line.complain(fault, f"; until then this worker polls every {POLL:g} s")
                await asyncio.sleep(PAUSE)

    async def _leave(self, queue: JetStreamContext.PullSubscription | None) -> None:
        """What it heard on, too: else each time leaves one behind."""
        if queue is not None:
            with suppress(*FAULTS):
                await queue.unsubscribe()

    async def _acknowledge(self, rings: list[Msg]) -> None:
        for ring in rings:
            await self._line.publish(ring.reply, b"")

    async def _refuse(self, rings: list[Msg]) -> None:
        for ring in rings:
            await self._line.publish(ring.reply, b"-NAK")


def _ending() -> bool:
    """Whether this task was told to stop; the library may have swallowed the order."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
