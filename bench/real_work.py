"""Real kinds through the whole engine, beside the bare library at the same concurrency."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import aiohttp
import apsw
import msgspec
import uvloop
from psycopg_pool import AsyncConnectionPool
from tests.support.postgres import running

from bench.engine import between, noting, quiet_collector, run
from bench.figure import Figure
from bench.http_tool import serving
from bench.log import raw_commit, raw_file
from bench.peers.environments import is_installed
from bench.peers.registry import WORKS, Peer, peers
from bench.peers.running import results_of
from bench.playbooks import FIBONACCI, HEAD, chain
from bench.python_tool import Bare
from bench.size import sized
from noetl.adapters.sqlite.database import CHECKPOINT_PAGES
from noetl.node.local import LocalNode
from noetl.settings import Settings

REPEATS = sized(5, small=1)
STEPS = sized(200)
ITERATIONS = sized(10_000, small=200)
CALLS = sized(3_000, small=100)
AT_ONCE = 100
CHILDREN, POOL = 8, 10
TASKS = WORKS["W4"].count
PYTHON = """    tool:
      - task:
          kind: python
          args: {n: 7}
          code: "result = {'id': n, 'words': [str(n)] * 10}"
"""
HTTP = """    tool:
      - task: {kind: http, url: "{{ workload.url }}/small"}
"""
KEYCHAIN = """keychain:
  - {name: pg, kind: postgres_credential, provider: environment, key: BENCH_PG}
"""
POSTGRES = """    tool:
      - task:
          kind: postgres
          auth: pg
          query: select a, b from t where a = %s
          params: [1]
          spec: {pool: 10}
"""


def figures() -> Iterator[Figure]:
    with TemporaryDirectory() as folder, quiet_collector():
        for one in (steps, whole, iterations):
            yield uvloop.run(one(Path(folder)))
    with TemporaryDirectory() as folder, serving() as url:
        yield uvloop.run(with_http(Path(folder), url))
    with TemporaryDirectory() as folder, running() as server, server.fresh_database() as database:
        os.environ["BENCH_PG"] = msgspec.json.encode(database.credential).decode()
        yield uvloop.run(with_postgres(Path(folder), database.url))


def each(task: str, head: str = HEAD) -> str:
    """A parallel loop of one task over `workload.numbers`."""
    return f"""{head}workflow:
  - step: each
    loop:
      in: "{{{{ workload.numbers }}}}"
      iterator: number
      spec: {{mode: parallel, max_in_flight: {AT_ONCE}}}
{task}"""


async def steps(folder: Path) -> Figure:
    """A chain of python steps, each with its commit; the start of the child is not counted."""
    local = await LocalNode.open(Settings(home=folder / "steps"))
    raw = raw_file(folder / "raw.db", CHECKPOINT_PAGES)
    ends: list[float] = []
    local.server.watchers.append(noting(ends))
    commits, turns = [], []
    for _ in range(REPEATS):
        commits += [raw_commit(raw) for _ in range(STEPS)]
        ends.clear()
        await run(local, chain(STEPS, PYTHON))
        turns += between(ends, STEPS)
    raw.close()
    await local.close()
    return Figure.of("python chain step / raw commit", turns, commits, 1.5, "s")


async def whole(folder: Path) -> Figure:
    """From nothing but a home to the end: the child's start is counted."""
    burr = peers()["burr"]
    beside = is_installed(burr)
    raw = raw_file(folder / "whole.db", CHECKPOINT_PAGES)
    ours, theirs = [], []
    for number in range(REPEATS):
        local = await LocalNode.open(Settings(home=folder / f"whole{number}"))
        ours.append(await run(local, chain(TASKS, FIBONACCI)))
        await local.close()
        theirs += of_burr(burr) if beside else [least(raw)]
    raw.close()
    other = "Burr" if beside else "least"
    return Figure.of(f"40 python tasks, whole / {other}", ours, theirs, 1.0 if beside else 1.5, "s")


def of_burr(burr: Peer) -> list[float]:
    """The same tasks in the process of Burr, which was warmed up."""
    found = [result.value for result in results_of(burr, ["W4"])]
    return [value for value in found if value is not None]


def least(raw: apsw.Connection) -> float:
    """Where Burr is not installed: a commit for each task, and the start of one child."""
    began = perf_counter()
    subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
    return perf_counter() - began + sum(raw_commit(raw) for _ in range(TASKS))


async def iterations(folder: Path) -> Figure:
    """Iterations that each ask a child, beside nothing but the asking."""
    local = await LocalNode.open(Settings(home=folder / "iterations"))
    children = [Bare(str(folder)) for _ in range(CHILDREN)]
    lanes = [child.ask for child in children]
    payload = {"numbers": list(range(ITERATIONS))}
    ours, bare = [], []
    await rate(lanes, ITERATIONS)
    for _ in range(REPEATS):
        ours.append(ITERATIONS / await run(local, each(PYTHON), payload))
        bare.append(await rate(lanes, ITERATIONS))
    for child in children:
        child.close()
    await local.close()
    name = "python iterations / bare children"
    return Figure.of(name, ours, bare, 0.5, "/s", at_most=False)


async def with_http(folder: Path, url: str) -> Figure:
    local = await LocalNode.open(Settings(home=folder / "home"))
    async with http_call(url) as bare:
        found = await in_turn(local, each(HTTP), bare, {"url": url})
    await local.close()
    return Figure.of("http iterations / bare aiohttp", *found, 0.5, "/s", at_most=False)


async def with_postgres(folder: Path, url: str) -> Figure:
    local = await LocalNode.open(Settings(home=folder / "home"))
    async with postgres_call(url) as bare:
        found = await in_turn(local, each(POSTGRES, HEAD + KEYCHAIN), bare, {})
    await local.close()
    return Figure.of("postgres iterations / bare psycopg", *found, 0.5, "/s", at_most=False)


@asynccontextmanager
async def http_call(url: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """What a task of the loop asks for, by the bare library."""
    jar, connector = aiohttp.DummyCookieJar(), aiohttp.TCPConnector(limit=AT_ONCE)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=jar) as session:

        async def bare() -> None:
            async with session.get(f"{url}/small") as answer:
                msgspec.json.decode(await answer.read())

        yield bare


@asynccontextmanager
async def postgres_call(url: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """The same of a database that is empty."""
    async with AsyncConnectionPool(
        url, min_size=POOL, max_size=POOL, kwargs={"autocommit": True}
    ) as pool:
        async with pool.connection() as connection:
            await connection.execute("create table t (a int primary key, b text)")
            await connection.execute("insert into t values (1, 'x')")

        async def bare() -> None:
            async with pool.connection() as connection:
                await (await connection.execute("select a, b from t where a = %s", [1])).fetchall()

        yield bare


async def in_turn(
    local: LocalNode, text: str, bare: Callable[[], Awaitable[None]], payload: dict[str, Any]
) -> tuple[list[float], list[float]]:
    """Calls a second, ours and bare, so that a busy moment hits both."""
    given = {**payload, "numbers": list(range(CALLS))}
    ours, theirs = [], []
    for _ in range(REPEATS + 1):  # the first warms up
        ours.append(CALLS / await run(local, text, given))
        theirs.append(await rate([bare] * AT_ONCE, CALLS))
    return ours[1:], theirs[1:]


async def rate(lanes: Sequence[Callable[[], Awaitable[None]]], calls: int) -> float:
    left = iter(range(calls))

    async def lane(ask: Callable[[], Awaitable[None]]) -> None:
        for _ in left:
            await ask()

    began = perf_counter()
    await asyncio.gather(*map(lane, lanes))
    return calls / (perf_counter() - began)
