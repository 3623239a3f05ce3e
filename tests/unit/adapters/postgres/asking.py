"""What the tests see of the database beside the adapter."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from noetl.adapters.postgres.storage import PostgresStorage


@asynccontextmanager
async def asking(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection of the test's own."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def until(fact: Callable[[], Awaitable[Any]]) -> Any:
    """Ask until it is so."""
    while not (found := await fact()):
        await asyncio.sleep(0)
    return found


async def spans(home: PostgresStorage, execution_id: str) -> list[tuple[int, int]]:
    return [(row.first, row.last) for row in await home.log.read(execution_id, limit=100_000)]


async def commits_of(connection: asyncpg.Connection, home: PostgresStorage) -> int:
    """How many commits the process of this home has made."""
    return int(
        await connection.fetchval(
            "select batch from noetl.process where token = $1", home.owners.me
        )
    )


async def writer_of(connection: asyncpg.Connection) -> int:
    """The backend of the one statement that waits for a lock."""

    async def waiting() -> Any:
        return await connection.fetchval(
            "select pid from pg_stat_activity where wait_event_type = 'Lock'"
            " and datname = current_database()"
        )

    return int(await until(waiting))
