"""A client of a server for programs without an event loop: one connection, one thread."""

import contextlib
import http.client
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

from noetl.api.home_token import at_home
from noetl.api.types import (
    CredentialPage,
    EntryPage,
    EventView,
    ExecutionPage,
    LinePage,
    TokenPage,
    TriggerPage,
    WaitingPage,
)
from noetl.client.answers import PATIENCE, address_of, away, headers_of, target_of, value_in
from noetl.client.asks import Ask, ClientQuestions
from noetl.client.stream import LAST, Messages, stream_ask
from noetl.errors import ServerAway

T = TypeVar("T")
Page = TypeVar(
    "Page",
    EntryPage,
    ExecutionPage,
    LinePage,
    CredentialPage,
    TokenPage,
    TriggerPage,
    WaitingPage,
)
PIECE = 65536
QUIET = 60.0
"""Seconds without a byte after which a stream is taken for dead; servers send beats meanwhile."""
PAUSES = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before a broken stream is tried again: a server that is started anew is found again."""
LOST = (http.client.HTTPException, OSError)


class Client(ClientQuestions):
    """
    `with Client("http://127.0.0.1:8765", token="…") as client: client.execute("reports/daily")`.

    Raises ServerAway where nobody answers, and what the server says no with: ExecutionNotFound,
    PlaybookNotFound, PlaybookRejected, KeyReused, or ServerRefused with the code of the API.
    Without a token that of the home is used (NOETL_HOME), if the server there is the one at `url`.
    A question that may be repeated is asked once more where the connection broke.
    """

    def __init__(
        self, url: str, token: str | None = None, *, pauses: Sequence[float] = PAUSES
    ) -> None:
        self.url = url.rstrip("/")
        address, self._token = (url, token) if token else at_home(url)
        self._pauses = pauses
        self._secure, self._host, self._port, self._below = address_of(address)
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def pages(self, ask: Callable[..., Page], *args: Any, **query: Any) -> Iterator[Page]:
        """Every page of a question with a cursor: `client.pages(client.executions, status=…)`."""
        cursor: str | None = None
        while True:
            page = ask(*args, **query, cursor=cursor)
            yield page
            cursor = page.next
            if cursor is None:
                return

    def stream(self, execution_id: str, *, after: int = 0) -> Iterator[EventView]:
        """
        Every event after a `seq` and those that come, until the last.

        A broken connection is taken up again where it broke; ServerAway where that fails.
        """
        left = list(self._pauses)
        while True:
            try:
                for event in self._streamed(execution_id, after):
                    after, left = event.seq, list(self._pauses)
                    yield event
                    if event.name == LAST:
                        return
            except ServerAway:
                if not left:
                    raise
            if not left:
                raise away(self.url, "the stream ended before its last event")
            pause = left.pop(0)
            time.sleep(pause)

    # ── the wire ─────────────────────────────────────────────────────────────────────────────

    def send(self, ask: Ask[T]) -> T:
        """Put a question, and wait for its answer."""
        again = ask.again
        while True:
            kept = self._connection is not None
            try:
                return self._exchange(ask)
            except LOST as broken:
                self.close()
                if not again or not (kept or isinstance(broken, http.client.HTTPException)):
                    raise away(self.url, broken) from None
                again = False

    def _exchange(self, ask: Ask[T]) -> T:
        if self._connection is None:
            self._connection = self._connected()
        connection = self._connection
        if connection.sock is not None:
            connection.sock.settimeout(PATIENCE + ask.patience)
        connection.timeout = PATIENCE + ask.patience
        self._request(connection, ask)
        answer = connection.getresponse()
        return value_in(ask, answer.status, answer.read(), self.url)

    def _streamed(self, execution_id: str, after: int) -> Iterator[EventView]:
        ask, messages = stream_ask(execution_id, after), Messages()
        with contextlib.closing(self._connected()) as connection:
            connection.timeout = QUIET
            try:
                self._request(connection, ask)
                answer = connection.getresponse()
                if answer.status >= 400:
                    value_in(ask, answer.status, answer.read(), self.url)
                while piece := answer.read1(PIECE):
                    yield from messages.take(piece)
            except LOST as broken:
                raise away(self.url, broken) from None

    def _connected(self) -> http.client.HTTPConnection:
        if self._secure:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=PATIENCE, context=ssl.create_default_context()
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=PATIENCE)

    def _request(self, connection: http.client.HTTPConnection, ask: Ask[Any]) -> None:
        target = self._below + target_of(ask)
        connection.request(ask.method, target, ask.body, headers_of(ask, self._token))
