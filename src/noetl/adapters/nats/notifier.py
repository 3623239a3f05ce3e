"""How a server wakes workers over NATS (Notifier)."""

from itertools import count

from noetl.adapters.nats.library import FAULTS, stream_errors
from noetl.adapters.nats.line import NatsLine
from noetl.adapters.nats.names import Names
from noetl.adapters.nats.stream import jetstream, make_stream
from noetl.ports.link import POLL

MESSAGE_ID = "Nats-Msg-Id"
PARTS = "Noetl-Parts"
MISSING = (stream_errors.NoStreamResponseError, stream_errors.NotFoundError)


class NatsNotifier:
    """
    Rings through the work queue, nudges by plain messages. Neither waits for anything.

    What JetStream does not take is not said again: workers poll, and the next ring comes.
    """

    def __init__(self, line: NatsLine, server: str, names: Names) -> None:
        self._line = line
        self._server = server
        self._names = names
        self._numbers = count(1)
        self._due: dict[str, int] = {}
        self._under_way: set[str] = set()

    def wake_pool(self, pool: str, parts: int) -> None:
        """Those that come while one is under way become one."""
        self._due[pool] = max(parts, self._due.get(pool, 0))
        if pool not in self._under_way and self._line.up.is_set():
            self._under_way.add(pool)
            self._line.start(self._ring_while_due(pool))

    def wake_worker(self, worker: str) -> None:
        if self._line.up.is_set():
            self._line.start(self._nudge(worker))

    async def _ring_while_due(self, pool: str) -> None:
        try:
            while pool in self._due:
                await self._ring(pool, self._due.pop(pool))
        except FAULTS as fault:
            self._due.pop(pool, None)
            self._line.complain(fault, f"; until then workers poll every {POLL:g} s")
        finally:
            self._under_way.discard(pool)

    async def _ring(self, pool: str, parts: int) -> None:
        subject = self._names.rings(pool, self._server)
        headers = {MESSAGE_ID: f"{subject}.{next(self._numbers)}", PARTS: str(parts)}
        told = self._server.encode()
        try:
            await jetstream(self._line).publish(subject, told, headers=headers)
        except MISSING:
            await make_stream(self._line, self._names)
            await jetstream(self._line).publish(subject, told, headers=headers)

    async def _nudge(self, worker: str) -> None:
        await self._line.publish(self._names.nudges(worker), self._server.encode())
