"""
What an iteration takes of the interpreter, counted: bytecodes in the process of `noetl run`, beside
those of the bare library. A busy machine changes nothing of it.

`python -m bench.bytecodes http` shows where they are.
"""

import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

import msgspec
import uvloop
from tests.support.postgres import running

from bench.engine import run
from bench.figure import Figure
from bench.http_tool import serving
from bench.playbooks import HEAD
from bench.real_work import (
    AT_ONCE,
    HTTP,
    KEYCHAIN,
    POSTGRES,
    PYTHON,
    each,
    http_call,
    postgres_call,
    rate,
)
from bench.size import sized
from noetl.node.local import LocalNode
from noetl.settings import Settings
from noetl.worker import worker

FEW, MANY = sized(100), sized(500, small=40)
"""Iterations of two runs: what both take is no iteration's."""
NEVER = 1e6
"""Seconds: counting is slow, and what has only begun would be told before its end."""
TWICE = 2.0
SHOWN = 60
Counts = Counter[CodeType]
Bare = Callable[[], Awaitable[None]]
Counted = tuple[Counts, float]
"""Of an iteration: where its bytecodes are, and how many a bare call takes."""


def figures() -> Iterator[Figure]:
    for kind, library in (("http", "aiohttp"), ("postgres", "psycopg")):
        where, bare = KINDS[kind]()
        name = f"{kind} iteration / bare {library}, bytecodes"
        yield Figure.of(name, [sum(where.values())], [bare], TWICE, "")


@contextmanager
def counting(counts: Counts) -> Iterator[None]:
    """Count the bytecodes of this thread."""

    def count(frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            counts[frame.f_code] += 1
        return count

    def enter(frame: FrameType, event: str, _: Any) -> Any:
        del event
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return count

    before = worker.NEWS
    worker.NEWS = NEVER
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(None)
        worker.NEWS = before


async def iterations(local: LocalNode, text: str, payload: dict[str, Any]) -> Counts:
    """The bytecodes of one iteration; whole numbers of `MANY - FEW` of them."""
    found: list[Counts] = []
    await run(local, text, {**payload, "numbers": list(range(FEW))})
    for number in (FEW, MANY):
        found.append(Counter())
        with counting(found[-1]):
            await run(local, text, {**payload, "numbers": list(range(number))})
    few, many = found
    return Counter({code: (many[code] - few[code]) / (MANY - FEW) for code in many})


async def calls(bare: Bare) -> float:
    counts: Counts = Counter()
    await rate([bare] * AT_ONCE, FEW)
    with counting(counts):
        await rate([bare] * AT_ONCE, MANY)
    return sum(counts.values()) / MANY


def with_http() -> Counted:
    async def story(folder: Path, url: str) -> Counted:
        local = await LocalNode.open(Settings(home=folder))
        async with http_call(url) as bare:
            found = await iterations(local, each(HTTP), {"url": url}), await calls(bare)
        await local.close()
        return found

    with TemporaryDirectory() as folder, serving() as url:
        return uvloop.run(story(Path(folder), url))


def with_postgres() -> Counted:
    async def story(folder: Path, url: str) -> Counted:
        local = await LocalNode.open(Settings(home=folder))
        async with postgres_call(url) as bare:
            found = await iterations(local, each(POSTGRES, HEAD + KEYCHAIN), {}), await calls(bare)
        await local.close()
        return found

    with TemporaryDirectory() as folder, running() as server, server.fresh_database() as database:
        os.environ["BENCH_PG"] = msgspec.json.encode(database.credential).decode()
        return uvloop.run(story(Path(folder), database.url))


def with_python() -> Counted:
    async def story(folder: Path) -> Counted:
        local = await LocalNode.open(Settings(home=folder))
        found = await iterations(local, each(PYTHON), {})
        await local.close()
        return found, 0.0

    with TemporaryDirectory() as folder:
        return uvloop.run(story(Path(folder)))


KINDS: dict[str, Callable[[], Counted]] = {
    "http": with_http,
    "postgres": with_postgres,
    "python": with_python,
}


def show(kind: str) -> None:
    where, bare = KINDS[kind]()
    print(f"{sum(where.values()):8.0f}  {kind} iteration; a bare call: {bare:.0f}")
    for code, number in where.most_common(SHOWN):
        place = code.co_filename.rpartition("site-packages/")[2].rpartition("src/noetl/")[2]
        print(f"{number:8.1f}  {place}: {code.co_qualname}")


if __name__ == "__main__":
    for named in sys.argv[1:]:
        show(named)
