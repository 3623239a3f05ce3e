"""Objects in the database of the log, in pieces that need little memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

import asyncpg

from noetl.adapters.postgres.door import SETTINGS, durable
from noetl.adapters.postgres.faults import AWAY, place_of
from noetl.adapters.postgres.statements import FOLDER, load
from noetl.ports.object_store import PIECE, Spool, StoreAway, StoreRefused

MOST = 4
"""Connections at once."""
CONNECT = 10.0
SQL = load((FOLDER / "bodies.sql").read_text("utf-8"))

T = TypeVar("T")


class PostgresObjectStore:
    """See `ObjectStore`. The tables must be there: the log's home makes them."""

    name = "postgres"

    def __init__(self, dsn: str) -> None:
        self.place = place_of(dsn)
        self._dsn = dsn
        self._idle: list[Any] = []
        self._free = asyncio.Semaphore(MOST)

    async def put(self, key: str, body: Spool) -> None:
        execution_id, _, checksum = key.partition("/")

        async def keep(connection: Any) -> None:
            if await connection.fetchval(SQL["has_object"], execution_id, checksum):
                return
            async with connection.transaction():
                number = 0
                async for piece in body.pieces():
                    named = (execution_id, checksum, number)
                    await connection.execute(SQL["keep_piece"], *named, piece)
                    number += 1

        await self._connected(keep)

    async def get(self, key: str, start: int = 0) -> AsyncIterator[bytes]:
        execution_id, _, checksum = key.partition("/")
        number, skip = divmod(start, PIECE)
        length = PIECE
        while length == PIECE:
            piece = await self._value("read_piece", execution_id, checksum, number)
            if piece is None and number == 0:
                raise FileNotFoundError(key)
            length = len(piece or b"")
            if length > skip:
                yield piece[skip:]
            number, skip = number + 1, 0

    async def keys(self, prefix: str) -> list[str]:
        rows = await self._connected(
            lambda connection: connection.fetch(SQL["objects_of"], prefix.rstrip("/"))
        )
        return [prefix + row["checksum"] for row in rows]

    async def remove(self, keys: Sequence[str]) -> int:
        ids, checksums = zip(*(key.split("/") for key in keys), strict=True) if keys else ((), ())
        return int(await self._value("remove_objects", ids, checksums))

    async def close(self) -> None:
        while self._idle:
            self._idle.pop().terminate()

    async def _value(self, statement: str, *given: Any) -> Any:
        return await self._connected(lambda connection: connection.fetchval(SQL[statement], *given))

    async def _connected(self, act: Callable[[Any], Awaitable[T]]) -> T:
        """On a connection of this call's own; one on which anything failed is given up."""
        connection: Any = None
        async with self._free:
            try:
                connection = self._idle.pop() if self._idle else await self._connect()
                answer = await act(connection)
            except BaseException as fault:
                if connection is not None:
                    connection.terminate()
                if isinstance(fault, AWAY):
                    await self.close()  # the others have died with it
                    raise StoreAway(_words(fault)) from fault
                if isinstance(fault, asyncpg.PostgresError):
                    raise StoreRefused(_words(fault)) from fault
                raise
            self._idle.append(connection)
        return answer

    async def _connect(self) -> Any:
        connection = await asyncpg.connect(self._dsn, timeout=CONNECT, server_settings=SETTINGS)
        await durable(connection)
        return connection


def _words(fault: BaseException) -> str:
    return " ".join(str(fault).split()) or "it does not answer in time"
