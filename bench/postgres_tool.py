"""The postgres tool beside bare psycopg with a pool of the same size."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from psycopg_pool import AsyncConnectionPool
from tests.support.postgres import Database, running

from bench.figure import Figure
from bench.place import Place, call_of
from bench.size import sized
from noetl.kinds.sql import PostgresInputs
from noetl.tools.sql.postgres import PostgresTool

STATEMENTS, AT_ONCE, POOL, REPEATS = sized(2000, small=40), 20, 10, sized(5, small=1)
READ = "select a, b from t where a = %s"
WRITE = "update t set b = b || '' where a = %s"


def figures() -> list[Figure]:
    with running() as server, server.fresh_database() as database:
        rates = asyncio.run(measure(database))
    return [
        Figure.of(f"postgres tool, {name}", ours, bare, target=0.5, unit="1/s", at_most=False)
        for name, (ours, bare) in rates.items()
    ]


async def measure(database: Database) -> dict[str, tuple[list[float], list[float]]]:
    place = Place(credential=database.credential)
    tool = PostgresTool()
    setup = "create table t (a int primary key, b text); insert into t values (1, 'x')"
    await tool.call(call_of(PostgresInputs(command=setup, auth="db")), place)
    async with AsyncConnectionPool(
        database.url, min_size=POOL, max_size=POOL, kwargs={"autocommit": True}
    ) as pool:

        async def bare(text: str) -> None:
            async with pool.connection() as connection:
                cursor = await connection.execute(text.encode(), [1])
                if cursor.description:
                    await cursor.fetchall()

        async def ours(text: str) -> None:
            inputs = PostgresInputs(command=text, params=[1], auth="db")
            assert (await tool.call(call_of(inputs, pool=POOL), place)).status == "ok"

        rates = {}
        for name, text in (("single-row read", READ), ("single-row write", WRITE)):
            rates[name] = await both(ours, bare, text)
        await tool.close()
    return rates


async def both(
    ours: Callable[[str], Awaitable[None]], bare: Callable[[str], Awaitable[None]], text: str
) -> tuple[list[float], list[float]]:
    measured: dict[Any, list[float]] = {ours: [], bare: []}
    for one in (ours, bare):
        await rate(one, text)
    for _ in range(REPEATS):
        for one in (ours, bare):
            measured[one].append(await rate(one, text))
    return measured[ours], measured[bare]


async def rate(ask: Callable[[str], Awaitable[None]], text: str) -> float:
    left = iter(range(STATEMENTS))

    async def lane() -> None:
        for _ in left:
            await ask(text)

    began = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(AT_ONCE)))
    return STATEMENTS / (time.perf_counter() - began)
