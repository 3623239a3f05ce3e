"""
Bodies of workers that cannot reach the store itself: a server keeps and fetches them (RES-1).

Over `http.client`, not aiohttp as the line: the port asks for calls that do not await (`put_now`).
"""

import asyncio
import hashlib
import http.client
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import IO, Any, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from noetl.adapters.bodies import checked_id, describe, lost, opened, shape_of, verified
from noetl.adapters.http.addresses import headers_for
from noetl.adapters.http.requests import reason_in
from noetl.errors import BodyLost, LogUnavailable, NoetlError
from noetl.messages.reference import Reference

PATH = "/api/worker/results"
PIECE = 262_144
IN_MEMORY = 4_194_304
MOST_IDLE = 4
PATIENCE = 60.0
TIMEOUT = 30.0
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
GONE = 410
AWAY = (http.client.HTTPException, OSError)

T = TypeVar("T")
Connection = http.client.HTTPConnection


class Unwell(OSError):
    """The server answered that it cannot now: come again."""


class HttpBodyWriter:
    """BodyWriter; the pieces are set aside and sent together."""

    def __init__(self, store: "HttpResultStore", execution_id: str) -> None:
        self._store = store
        self._execution_id = execution_id
        self._aside: SpooledTemporaryFile[bytes] = SpooledTemporaryFile(  # noqa: SIM115
            max_size=IN_MEMORY
        )
        self._hash = hashlib.sha256()
        self._size = 0
        self._shape = "null"

    def write(self, piece: bytes) -> None:
        if piece and not self._size:
            self._shape = shape_of(piece)
        try:
            self._aside.write(piece)
        except OSError as refused:
            self._aside.close()
            raise LogUnavailable(
                f"a result cannot be set aside: {refused.strerror or refused}; free space in the "
                "folder for temporary files, and try again"
            ) from refused
        self._hash.update(piece)
        self._size += len(piece)

    async def finish(self, schema_hint: str | None = None) -> Reference:
        return await asyncio.to_thread(self.finish_now, schema_hint or self._shape)

    async def discard(self) -> None:
        self._aside.close()

    def finish_now(self, schema_hint: str) -> Reference:
        with self._aside as aside:
            reference = self._store.send(self._execution_id, aside, self._size, schema_hint)
        if reference.checksum != self._hash.hexdigest():
            lost(reference, "is not what was sent")
        return reference


class HttpResultStore:
    """ResultStore of a worker; its references are those of the servers' own store."""

    def __init__(
        self,
        urls: Sequence[str],
        token: str | None,
        *,
        name: str,
        patience: float = PATIENCE,
    ) -> None:
        self.name = name
        self._urls = list(urls)
        self._headers = headers_for(token)
        self._patience = patience
        self._idle: list[tuple[str, Connection]] = []

    async def put(self, execution_id: str, body: bytes) -> Reference:
        return await asyncio.to_thread(self.put_now, execution_id, body)

    def put_now(self, execution_id: str, body: bytes) -> Reference:
        writer = self.open(execution_id)
        writer.write(body)
        return writer.finish_now(describe(body))

    def open(self, execution_id: str) -> HttpBodyWriter:
        return HttpBodyWriter(self, checked_id(execution_id))

    async def fetch(self, reference: Reference) -> Any:
        return await asyncio.to_thread(self.fetch_now, reference)

    def fetch_now(self, reference: Reference) -> Any:
        return opened(reference, self._asked(partial(whole, self._target(reference))))

    def pieces(self, reference: Reference) -> Iterator[bytes]:
        return verified(reference, self._read(reference))

    async def remove(self, execution_id: str, keep: frozenset[str] = frozenset()) -> int:
        """Retention is the servers' business: a worker's token removes nothing."""
        raise NoetlError(f"a worker removes no results (of {execution_id}, all but {len(keep)})")

    def close(self) -> None:
        """Let go of the connections."""
        while self._idle:
            self._idle.pop()[1].close()

    def send(self, execution_id: str, body: IO[bytes], size: int, hint: str) -> Reference:
        """Keep a body of this size under its checksum."""
        target = f"{PATH}?{urlencode({'execution_id': execution_id, 'hint': hint})}"

        def post(connection: Connection) -> Reference:
            body.seek(0)
            headers = {"Content-Type": "application/json", "Content-Length": str(size)}
            connection.request("POST", target, body, {**self._headers, **headers})
            return Reference(**msgspec.json.decode(answer_of(connection).read()))

        kept: Reference = self._asked(post)
        return kept

    def _target(self, reference: Reference) -> tuple[str, dict[str, str]]:
        asked = {
            "store": reference.store,
            "key": reference.key,
            "size": reference.size,
            "checksum": reference.checksum,
        }
        return f"{PATH}?{urlencode(asked)}", self._headers

    def _read(self, reference: Reference) -> Iterator[bytes]:
        """Piece by piece, on a connection that nobody else uses meanwhile."""
        answer, connection, url = self._asked(partial(begun, self._target(reference)), keep=True)
        try:
            while piece := answer.read(PIECE):
                yield piece
        except AWAY as broken:
            connection.close()
            lost(reference, f"broke off on its way ({broken or type(broken).__name__})")
        else:
            self._give_back(url, connection)

    def _asked(self, ask: Callable[[Connection], T], *, keep: bool = False) -> Any:
        """Ask a server; another, or the same later, where it is away."""
        pause, until = FIRST_PAUSE, time.monotonic() + self._patience
        while True:
            away: Exception | None = None
            for url in self._urls:
                connection = self._take(url)
                try:
                    told = ask(connection)
                except AWAY as wrong:
                    connection.close()
                    away = wrong
                except BaseException:
                    connection.close()
                    raise
                else:
                    if keep:
                        return told, connection, url
                    self._give_back(url, connection)
                    return told
            if time.monotonic() + pause > until:
                raise LogUnavailable(
                    f"a result cannot be stored at or read from {', '.join(self._urls)}: "
                    f"{away or type(away).__name__}; check the server and try again"
                ) from away
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _take(self, url: str) -> Connection:
        # Threads share the list; taking from it and adding to it are single steps of Python.
        with suppress(IndexError):
            known, connection = self._idle.pop()
            if known == url:
                return connection
            connection.close()
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        return kind(parts.hostname or "", parts.port, timeout=TIMEOUT)

    def _give_back(self, url: str, connection: Connection) -> None:
        if len(self._idle) < MOST_IDLE:
            self._idle.append((url, connection))
        else:
            connection.close()


def begun(target: tuple[str, dict[str, str]], connection: Connection) -> http.client.HTTPResponse:
    connection.request("GET", target[0], headers=target[1])
    return answer_of(connection)


def whole(target: tuple[str, dict[str, str]], connection: Connection) -> bytes:
    return begun(target, connection).read()


def answer_of(connection: Connection) -> http.client.HTTPResponse:
    """The answer, unless it is a refusal."""
    answer = connection.getresponse()
    if answer.status < 400:
        return answer
    message, _ = reason_in(answer.read(), answer.status)
    if answer.status == GONE:
        raise BodyLost(message)
    if answer.status >= 500:
        raise Unwell(message)
    raise NoetlError(f"the server refused a result: {message}")
