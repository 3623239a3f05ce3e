"""What the parts themselves cost: one commit, one round trip."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable

from bench.size import sized

ROUNDS = sized(400, small=10)


async def floors(database: str, queue: str) -> tuple[list[float], list[float]]:
    """Seconds of single commits on PostgreSQL, and of round trips over NATS."""
    import asyncpg
    import nats
    from nats.aio.msg import Msg

    connection = await asyncpg.connect(database)
    await connection.execute("create table if not exists raw_rows (text text)")
    statement = await connection.prepare("insert into raw_rows values ($1)")
    commits = await timed(lambda: statement.fetch("x" * 800))
    await connection.close()
    client = await nats.connect(queue)

    async def echo(message: Msg) -> None:
        await message.respond(message.data)

    await client.subscribe("bench.echo", cb=echo)
    trips = await timed(lambda: client.request("bench.echo", b"x" * 800))
    await client.close()
    return commits, trips


async def timed(ask: Callable[[], Awaitable[object]]) -> list[float]:
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await ask()
        found.append(time.perf_counter() - began)
    return found


def measured(database: str, queue: str) -> tuple[float, float]:
    commits, trips = asyncio.run(floors(database, queue))
    return statistics.median(commits), statistics.median(trips)
