"""Who reads, and who writes what is not part of the log: a few connections, each call by itself."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncpg

from noetl.adapters.postgres.columns import storable
from noetl.adapters.postgres.door import SETTINGS, Door, durable
from noetl.adapters.postgres.faults import unavailable
from noetl.adapters.postgres.statements import SQL
from noetl.errors import LogUnavailable

MOST_CONNECTIONS = 4
# A plan for the filters that are given, not one that fits all of them.
READING = SETTINGS | {"plan_cache_mode": "force_custom_plan"}

T = TypeVar("T")


class PostgresReader:
    """
    Calls see all that was committed before they began, and wait for a server that is away.

    A call whose answer was lost is made again: every statement here may run twice.
    """

    def __init__(self, door: Door) -> None:
        self.door = door
        self._pool = asyncpg.create_pool(
            door.dsn,
            min_size=0,
            max_size=MOST_CONNECTIONS,
            init=durable,
            reset=nothing,
            **door.options(READING),
        )
        self._closed = False

    async def open(self) -> None:
        """Must come first; connections are made when they are needed."""
        await self._pool

    async def rows(self, statement: str, *parameters: Any) -> list[Any]:
        """All rows of the statement of this name."""
        given = [storable(value) for value in parameters]
        return await self._ask(lambda pool: pool.fetch(SQL[statement], *given))

    async def one(self, statement: str, *parameters: Any) -> Any:
        """The first row of the statement of this name, or None."""
        given = [storable(value) for value in parameters]
        return await self._ask(lambda pool: pool.fetchrow(SQL[statement], *given))

    async def write(self, statement: str, *parameters: Any) -> int:
        """Run the statement of this name; the answer is how many rows it touched."""
        given = [storable(value) for value in parameters]
        told = await self._ask(lambda pool: pool.execute(SQL[statement], *given))
        return int(str(told).rpartition(" ")[2])

    async def once(self, statement: str, *parameters: Any) -> int:
        """The same without patience, for what comes again by itself."""
        told = await self._pool.execute(SQL[statement], *parameters)
        return int(str(told).rpartition(" ")[2])

    async def patiently(self, use: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """What takes more than one statement, on a connection of its own; it may run twice, too."""
        return await self._ask(lambda _: self.lent(use))

    async def lent(self, use: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """The same without patience."""
        async with self._pool.acquire() as connection:
            return await use(connection)

    async def close(self) -> None:
        """Wait for what is under way and let go of the connections."""
        self._closed = True
        await self._pool.close()

    async def _ask(self, question: Callable[[asyncpg.Pool], Awaitable[T]]) -> T:
        async def attempt() -> T:
            if self._closed:
                raise LogUnavailable(f"the home at {self.door.place} is closed")
            return await question(self._pool)

        try:
            return await self.door.patiently(attempt)
        except asyncpg.PostgresError as error:
            raise unavailable(error, self.door.place) from error


async def nothing(_: asyncpg.Connection) -> None:
    """Calls leave nothing behind on a connection: to reset it would cost a round trip each."""
