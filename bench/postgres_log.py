"""What a decision costs on PostgreSQL: in groups beside raw rows, alone beside a raw commit."""

import asyncio
from time import perf_counter

import asyncpg
import uvloop
from tests.support.postgres import Database, running

from bench.figure import Figure
from bench.log import BODY, PER_COMMIT, Supply
from bench.size import sized
from noetl.adapters.postgres.storage import PostgresStorage, open_storage
from noetl.ports.event_log import Decision

REPEATS = sized(9, small=1)
GROUPED = sized(20_000)
ALONE = sized(300)
RAW_ROWS = "insert into public.raw select * from unnest($1::bigint[], $2::text[])"
RAW_ROW = "insert into public.raw values ($1, $2)"


def figures() -> list[Figure]:
    # Durable, as anybody's server is.
    with running("fsync=on") as server, server.fresh_database() as database:
        return uvloop.run(measure(database))


async def measure(database: Database) -> list[Figure]:
    raw = await asyncpg.connect(database.url)
    await raw.execute("create table public.raw (n bigint, text text)")
    home = await open_storage(database.url)
    chain, many = Supply(["chain"]), Supply([f"e{n}" for n in range(PER_COMMIT)])
    await asyncio.gather(*(home.log.append(decision) for decision in many.take(PER_COMMIT)))
    rows: list[float] = []
    one_execution: list[float] = []
    executions: list[float] = []
    commits: list[float] = []
    alone: list[float] = []
    for _ in range(REPEATS):
        rows.append(await raw_rows(raw))
        one_execution.append(await in_groups(home, chain.take(GROUPED)))
        executions.append(await in_groups(home, many.take(GROUPED)))
        for _ in range(ALONE):
            commits.append(await raw_commit(raw))
            alone.append(await lone(home, chain.take(1)[0]))
    await home.close()
    await raw.close()
    # A decision of an execution of its own writes two rows and two indexes, a raw row only itself.
    return [
        Figure.of("postgres log: one execution", one_execution, rows, 0.4, "/s", at_most=False),
        Figure.of("postgres log: 1000 executions", executions, rows, 0.25, "/s", at_most=False),
        Figure.of("postgres log: lone / raw commit", alone, commits, 1.5, "s"),
    ]


async def raw_rows(connection: asyncpg.Connection) -> float:
    """Rows of 400 bytes each second, a thousand to a commit."""
    began = perf_counter()
    for start in range(0, GROUPED, PER_COMMIT):
        numbers = list(range(start, start + PER_COMMIT))
        await connection.execute(RAW_ROWS, numbers, [BODY] * PER_COMMIT)
    return GROUPED / (perf_counter() - began)


async def raw_commit(connection: asyncpg.Connection) -> float:
    began = perf_counter()
    await connection.execute(RAW_ROW, 1, BODY)
    return perf_counter() - began


async def in_groups(home: PostgresStorage, decisions: list[Decision]) -> float:
    """A thousand to a commit, as the rows beside them."""
    began = perf_counter()
    for start in range(0, len(decisions), PER_COMMIT):
        for waiting in [home.log.append(one) for one in decisions[start : start + PER_COMMIT]]:
            await waiting
    return len(decisions) / (perf_counter() - began)


async def lone(home: PostgresStorage, decision: Decision) -> float:
    began = perf_counter()
    await home.log.append(decision, alone=True)
    return perf_counter() - began
