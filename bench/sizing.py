"""`python -m bench.sizing`: what executions, parts and processes take of memory and disk."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from tests.support.direct_link import DirectLink, Exchange
from tests.support.postgres import running

from bench.playbooks import FIBONACCI, chain, loop
from bench.size import sized
from noetl.node.server import ServerNode
from noetl.node.work_plane import WorkPlane
from noetl.settings import Settings
from noetl.tools.table import Toolbox

EXECUTIONS = sized(1_000)
WAITING = max(2_000, sized(5_000))
"""What is in use for a moment while they begin must not weigh beside them."""
ITERATIONS = sized(20_000)
IN_ONE_LOOP = 50_000
"""At any size: an iteration takes so little that pages of the allocator would drown a few."""
SCHEDULES = sized(100_000)
AT_ONCE = 500
SIZE = "select pg_database_size(current_database())"
ROW = "{:<58} {:>12}"


def main() -> None:
    """Memory first: each figure in a process of its own."""
    for name in MEMORY:
        own = (sys.executable, "-m", "bench.sizing", name)
        subprocess.run(own, check=True, cwd=Path(__file__).parent.parent)
    with TemporaryDirectory() as folder:
        asyncio.run(on_sqlite(Path(folder)))
    with running() as server, server.fresh_database() as database:
        asyncio.run(on_postgres(database.url))


def say(figure: str, value: float, unit: str) -> None:
    print(ROW.format(figure, f"{value:,.0f} {unit}"), flush=True)


# ── memory ───────────────────────────────────────────────────────────────────────────────────


def resident() -> float:
    """Bytes of this process that are in memory now."""
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024.0
    raise RuntimeError("the kernel tells no VmRSS")


async def waiting(plane: ServerNode) -> None:
    """Executions whose first step no worker has taken yet."""
    await started(plane, chain(1, FIBONACCI), 1)
    say("a server that has just begun", resident() / 1024**2, "MiB")
    await started(plane, chain(1, FIBONACCI), AT_ONCE)
    before = resident()
    await started(plane, chain(1, FIBONACCI), WAITING)
    each = (resident() - before) / WAITING
    say("memory of an execution with one part that waits", each, "bytes")


async def loop_waiting(plane: ServerNode) -> None:
    """A loop that no worker has taken yet."""
    text = loop("parallel").replace("{kind: noop}", "{kind: python, code: 'result = 1'}")
    await started(plane, text, 1, [])
    before = resident()
    await started(plane, text, 1, list(range(IN_ONE_LOOP)))
    each = (resident() - before) / IN_ONE_LOOP
    say("memory of an iteration that waits", each, "bytes")


async def signal_waiting(plane: ServerNode) -> None:
    """Executions that wait for a signal, and hold no worker."""
    text = chain(1, "    tool:\n      - rest: {kind: wait, signal: never}\n")
    await started(plane, text, AT_ONCE)
    before = resident()
    ids = await started(plane, text, WAITING)
    while (await plane.row(ids[-1])).status != "running":
        await asyncio.sleep(0)
    each = (resident() - before) / WAITING
    say("memory of a token that waits for a signal", each, "bytes")


async def schedules(plane: ServerNode) -> None:
    """Schedules that are due tomorrow: rows, and nothing else."""
    from bench.triggers import fill
    from noetl.server.triggering import now_ms

    later = now_ms() + 86_400_000
    before = resident()
    await fill(plane, SCHEDULES, planned_at=later, due_at=later)
    await asyncio.sleep(1)
    say("memory of a schedule", max(0.0, resident() - before) / SCHEDULES, "bytes")


MEMORY: dict[str, Callable[[ServerNode], Awaitable[None]]] = {
    "waiting": waiting,
    "loop_waiting": loop_waiting,
    "signal_waiting": signal_waiting,
    "schedules": schedules,
}


async def in_memory(name: str) -> None:
    with TemporaryDirectory() as folder:
        plane = await ServerNode.open(Settings(home=Path(folder)))
        await MEMORY[name](plane)
        await plane.close()


# ── disk ─────────────────────────────────────────────────────────────────────────────────────


async def on_sqlite(folder: Path) -> None:
    async def size() -> float:
        return float(sum(file.stat().st_size for file in folder.glob("noetl.db*")))

    await on_disk("SQLite", Settings(home=folder), size)


async def on_postgres(url: str) -> None:
    async def size() -> float:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            found = await (await connection.execute(SIZE)).fetchone()
        assert found is not None, "a count has a row"
        return float(found[0])

    with TemporaryDirectory() as folder:
        await on_disk("PostgreSQL", Settings(home=Path(folder), db=url), size)


async def on_disk(name: str, settings: Settings, size: Callable[[], Awaitable[float]]) -> None:
    """What is on the disk after the store has closed, so that nothing lies in a journal."""
    sizes, events = [], []
    numbers = list(range(ITERATIONS))
    for text, count, payload in ((chain(5), 0, []), (chain(5), EXECUTIONS, []), (LOOP, 1, numbers)):
        plane = await ServerNode.open(settings)
        async with at_work(plane):
            ids = await started(plane, text, count, payload)
            events.append(sum([await ended(plane, one) for one in ids]))
        await plane.close()
        sizes.append(await size())
    grown = sizes[1] - sizes[0]
    say(f"{name}: an execution of five steps", grown / EXECUTIONS, "bytes")
    say(f"{name}: an event of it", grown / events[1], "bytes")
    say(f"{name}: an iteration of a loop", (sizes[2] - sizes[1]) / ITERATIONS, "bytes")


LOOP = loop("parallel")


@asynccontextmanager
async def at_work(plane: ServerNode) -> AsyncIterator[None]:
    """A worker of this process."""
    exchange = Exchange()
    plane.dispatcher.notifiers.append(exchange.attach(plane.dispatcher))
    tools = Toolbox(plane.settings.home)
    worker = WorkPlane(plane.settings, DirectLink(exchange), results=plane.results, tools=tools)
    working = asyncio.create_task(worker.run())
    yield
    await worker.drain(0.0)
    await working
    await worker.worker.close()
    await worker.keychain.close()


async def ended(plane: ServerNode, execution_id: str) -> int:
    """How many events it took."""
    assert await plane.ended(execution_id, 600.0), f"{execution_id} does not end"
    return (await plane.row(execution_id)).seq


async def started(
    plane: ServerNode, text: str, count: int, numbers: list[int] | None = None
) -> list[str]:
    entry, _ = await plane.register(text)
    payload: dict[str, Any] = {"numbers": numbers or []}
    ids: list[str] = []
    while len(ids) < count:
        some = (
            plane.execute(playbook_id=entry.playbook_id, payload=payload)
            for _ in range(min(AT_ONCE, count - len(ids)))
        )
        ids += [row.execution_id for row in await asyncio.gather(*some)]
    return ids


if __name__ == "__main__":
    if sys.argv[1:]:
        asyncio.run(in_memory(sys.argv[1]))
    else:
        main()
