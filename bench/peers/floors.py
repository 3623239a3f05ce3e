"""What the machine allows, in the same run: a commit, a group of them, a child, NATS."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

import uvloop
from tests.support import nats

from bench.distributed.raw import timed
from bench.log import raw_commit, raw_file, raw_rows
from bench.peers.registry import Result
from bench.python_child import Echo
from bench.size import sized

COMMITS = sized(300)
TRIPS = sized(1_000)


def floor(name: str, value: float, unit: str, durable: str) -> Result:
    return Result(
        peer="floor",
        title=name,
        work="floor",
        unit=unit,
        value=value,
        durable=durable,
        isolated="nothing runs",
    )


def floors(names: list[str]) -> Iterator[Result]:
    for name in names:
        yield FLOORS[name]()


def commit() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        raw = raw_file(Path(folder) / "raw.db")
        took = median(raw_commit(raw) for _ in range(COMMITS))
        raw.close()
    return floor("one commit on SQLite", 1000 * took, "ms", "each row, synced")


def group_commit() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        raw = raw_file(Path(folder) / "raw.db")
        rate = median(raw_rows(raw) for _ in range(3))
        raw.close()
    return floor("rows, 1,000 to a commit", rate, "rows/s", "each thousand, synced")


def child() -> Result:
    async def trips() -> float:
        echo = Echo()
        took = median(await timed_trips(echo))
        echo.close()
        return took

    return floor("a byte to a child and back", 1000 * uvloop.run(trips()), "ms", "nothing")


async def timed_trips(echo: Echo) -> list[float]:
    found = []
    for _ in range(TRIPS):
        began = perf_counter()
        await echo.ask()
        found.append(perf_counter() - began)
    return found


def queue() -> Result:
    import nats as client
    from nats.aio.msg import Msg

    async def trips(url: str) -> float:
        line = await client.connect(url)

        async def echo(message: Msg) -> None:
            await message.respond(message.data)

        await line.subscribe("bench.echo", cb=echo)
        took = median(await timed(lambda: line.request("bench.echo", b"x" * 800)))
        await line.close()
        return took

    with nats.running() as server:
        took = uvloop.run(trips(server.url))
    return floor("a request over NATS", 1000 * took, "ms", "nothing")


FLOORS = {"commit": commit, "group": group_commit, "child": child, "nats": queue}
