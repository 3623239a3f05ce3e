"""
What a server takes from strangers before it knows them: so many bytes, so many seconds, so many.

uvicorn's own protocol waits for ever and keeps whatever it is sent: a head of 150 MB cost three
times as much memory, and connections without an end left no file for anybody else.
"""

import asyncio
import resource
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from noetl.api.crowd import line_of
from noetl.api.gate import CALLER
from noetl.errors import ServerRefused
from noetl.messages.details import Details, TooDetailed

LARGEST_HEAD = 64 * 1024
"""Bytes of the first line and the headers, trailers included."""
LONGEST_ADDRESS = 8 * 1024
"""Bytes of the address, of the whole first line nearly."""
MOST_PARAMETERS = 64
"""Of one address. The framework reads them before it knows who asks, and keeps what it has read of
the last thousand addresses: 64 KB of `a&b&…` took 4 MB, and so gigabytes for good."""
HEAD_WITHIN = 10.0
"""Seconds for all of the head, from the beginning of the connection or of the request."""
BODY_WITHIN = 30.0
"""Seconds without a byte of a body that was promised."""
STRANGE_WITHIN = 60.0
"""Seconds for all of a request by which nobody has proved who he is, however it drips."""
ANSWER_WITHIN = 60.0
"""Seconds in which whoever is answered reads nothing."""
MOST = 4000
"""Connections at once."""
MOST_HELD = 256 * 1024 * 1024
"""Bytes of bodies in memory, of all requests that are not yet answered."""
MANY = 8
"""Of all connections, the part that one person has before he makes room for others."""
PASSED_ON = "/api/worker/results"
"""Where bodies are stored piece by piece, whatever their size."""
UNCOUNTED = ("/api/worker/", "/hooks/", "/api/catalog", "/api/validate", "/api/editing/")
"""What is read here is counted later, as a report or the data of a trigger; or it is one text."""
QUEUED = 64
"""Requests that one connection may send before the first is answered."""
LOOK = 1.0
REFUSED = (
    b"HTTP/1.1 %d Refused\r\nconnection: close\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%b"
)
FULL = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def most_connections() -> int:
    """At once: half of the files that this process may have open, if that is less than MOST."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if files == resource.RLIM_INFINITY else min(MOST, files // 2)


class HeadTooLarge(Exception):
    """More of a head than anybody needs; the parser makes it a 400."""


class Intake(HttpToolsProtocol):
    """One connection, whose patience ends at `due`; None while nothing of it is waited for."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.over: Callable[[], None] | None = None
        """Called when the connection has ended."""
        self.due: float | None = None
        self.unread: float | None = None
        """When our patience ends with one who does not read."""
        self.in_head = True
        self._refused = False
        self._in_body = self._came = False
        """Whether the body, or what follows it, is awaited; and whether some of it came."""
        self.since = 0.0
        """When its request, or the wait for one, began."""
        self._head = self._unended = 0
        self._details = Details()
        self.held = 0
        """Bytes of bodies of this connection that are in memory."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin()
        if len(self.connections) > most_connections():
            self._make_room()

    def _make_room(self) -> None:
        """Whoever is answered or has waited longest goes; where all are served, the new one."""
        line = line_of(self.server_state)
        found = line.waiting(self) or line.beyond(most_connections() // MANY, self.since)
        if found is not None:
            found.transport.abort()
            return
        self.transport.write(FULL)
        self.transport.close()

    def _begin(self) -> None:
        self.since = self.loop.time()
        self.due = self.since + HEAD_WITHIN
        line_of(self.server_state).begins(self)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self.due is None and (self.cycle is None or self.cycle.response_complete):
            self._begin()  # empty lines begin no request
        self._came = False
        super().data_received(data)
        # A value that does not end is kept by the parser, which calls nobody before its end; and it
        # is copied with each piece that comes. Behind a body in chunks there may be headers, too.
        if self.in_head or (self._in_body and not self._came):
            self._unended += len(data)
            if self._unended > LARGEST_HEAD and not self.transport.is_closing():
                self.send_400_response("The head of the request is too large.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.in_head, self._in_body = True, False
        self._head = self._unended = 0
        self._details = Details()
        self._begin()

    def on_url(self, url: bytes) -> None:
        self._grown(len(url))
        super().on_url(url)
        if len(self.url) > LONGEST_ADDRESS or self.url.count(b"&") >= MOST_PARAMETERS:
            raise HeadTooLarge

    def on_header(self, name: bytes, value: bytes) -> None:
        self._grown(len(name) + len(value) + 4)
        super().on_header(name, value)

    def _grown(self, size: int) -> None:
        self._head += size
        if self._head > LARGEST_HEAD:
            raise HeadTooLarge

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= QUEUED:
            raise HeadTooLarge
        self.in_head, self._in_body = False, True
        self.due = self.loop.time() + BODY_WITHIN
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._came, self._unended = True, 0
        if not self.cycle.response_complete:
            due = self.loop.time() + BODY_WITHIN
            self.due = due if self.is_known() else min(due, self.since + STRANGE_WITHIN)
            if self.scope["path"] != PASSED_ON and not hold(self, len(body)):
                return
            if not self.scope["path"].startswith(UNCOUNTED):
                try:
                    self._details.count(body)
                except TooDetailed as why:
                    self._refuse(why)
                    return
        super().on_body(body)

    def _refuse(self, why: ServerRefused) -> None:
        """
        The answer, before anything of the body was read. The rest of it goes nowhere: a connection
        that ends before all came takes the answer with it.
        """
        said = msgspec.json.encode({"error": {"code": why.code, "message": str(why)}})
        self.transport.write(REFUSED % (why.status, len(said), said))
        self._refused = True
        self.due = self.loop.time() + HEAD_WITHIN
        self.cycle.response_complete = self.cycle.disconnected = True
        self.cycle.message_event.set()
        let_go(self)

    def connection_lost(self, exc: Exception | None) -> None:
        let_go(self)
        line_of(self.server_state).leaves(self)
        if self.over is not None:
            self.over()
        super().connection_lost(exc)

    def on_message_complete(self) -> None:
        self.due, self._in_body = None, False
        super().on_message_complete()
        if self._refused:
            self.transport.close()

    def is_known(self) -> bool:
        """Whether the gate let its request in; routes that are open to all let in strangers."""
        return CALLER in self.scope

    def is_waiting(self) -> bool:
        answered = self.cycle is None or self.cycle.response_complete
        return answered or (self.due is not None and (self.in_head or not self.is_known()))

    def is_late(self, now: float) -> bool:
        if self.unread is not None and self.unread < now:
            return True
        # Where we read no further ourselves, the other side is not to blame.
        return self.due is not None and self.due < now and not self.flow.read_paused

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread = self.loop.time() + ANSWER_WITHIN

    def resume_writing(self) -> None:
        super().resume_writing()
        self.unread = None

    def on_response_complete(self) -> None:
        let_go(self)
        if self.due is not None:  # the answer did not want the rest of the body
            self.due = self.loop.time() + HEAD_WITHIN
        line_of(self.server_state).is_answered(self)
        super().on_response_complete()


HELD: WeakKeyDictionary[ServerState, int] = WeakKeyDictionary()
"""Server → bytes of bodies in its memory."""


def hold(one: Intake, size: int) -> bool:
    """
    So many bytes more are in memory; False where its connection is cut off for it. Who has taken
    longest makes room: bodies that drip keep no others out.
    """
    state = one.server_state
    one.held += size
    HELD[state] = HELD.get(state, 0) + size
    while HELD[state] > MOST_HELD and one.held:
        reading = [other for other in intakes(state) if other.held and other.due is not None]
        oldest = min(reading, key=lambda other: other.since, default=one)
        let_go(oldest)
        oldest.transport.abort()
    return not one.transport.is_closing()


def let_go(one: Intake) -> None:
    """Its request was answered, or its connection is gone."""
    if one.held:
        HELD[one.server_state] -= one.held
        one.held = 0


def intakes(state: ServerState) -> list[Intake]:
    """Connections that are not about to close."""
    every = [one for one in state.connections if isinstance(one, Intake)]
    return [one for one in every if not one.transport.is_closing()]


async def sweep(state: ServerState) -> None:
    """Close whoever lets us wait too long; until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(LOOK)
        now = loop.time()
        for one in list(state.connections):
            if isinstance(one, Intake) and one.is_late(now):
                one.transport.abort()
