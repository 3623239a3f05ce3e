"""DBOS on SQLite or PostgreSQL: each step is committed before the next one begins."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from dbos import DBOS, SetWorkflowID

from bench.peers.programs.telling import Order, asked, fibonacci, main

AT_ONCE = 100
ORDER = asked()
ADDRESS = ORDER.url or f"sqlite:///{ORDER.folder}/dbos.sqlite"
DBOS(
    config={
        "name": "bench",
        "system_database_url": ADDRESS,
        "log_level": "ERROR",
        "run_admin_server": False,
    }
)


@DBOS.step()
def nothing() -> None:
    ORDER.one()


@DBOS.step()
async def nothing_async() -> None:
    ORDER.one()


@DBOS.step()
def fib() -> int:
    ORDER.one()
    return fibonacci(10)


@DBOS.workflow()
def chain(count: int) -> None:
    for _ in range(count):
        nothing()


@DBOS.workflow()
async def chain_async(count: int) -> None:
    for _ in range(count):
        await nothing_async()


@DBOS.workflow()
def fibonaccis(count: int) -> None:
    for _ in range(count):
        fib()


@DBOS.workflow()
async def spread(count: int) -> None:
    free = asyncio.Semaphore(AT_ONCE)

    async def one() -> None:
        async with free:
            await nothing_async()

    await asyncio.gather(*(one() for _ in range(count)))


@DBOS.workflow()
async def blocked() -> None:
    await DBOS.recv_async("go", timeout_seconds=86_400)


def timed(work: Callable[[int], None]) -> Callable[[Order], None]:
    """A workflow that is called, beside one that was called before."""

    def run(order: Order) -> None:
        DBOS.launch()
        chain(1)
        order.begin()
        work(order.count)
        order.end()

    return run


def awaited(work: Callable[[Order], Coroutine[Any, Any, None]]) -> Callable[[Order], None]:
    def run(order: Order) -> None:
        DBOS.launch()
        asyncio.run(work(order))

    return run


async def parallel(order: Order) -> None:
    await spread(2)
    order.begin()
    await spread(order.count)
    order.end()


async def many(order: Order) -> None:
    await chain_async(1)
    order.begin()
    handles = [await DBOS.start_workflow_async(chain_async, 5) for _ in range(order.count)]
    for handle in handles:
        await handle.get_result()
    order.end()


async def beside_blocked(order: Order) -> None:
    await chain_async(1)
    order.begin()
    made = 0
    while made < order.count and order.took < order.bound / 2:
        await asyncio.gather(*(DBOS.start_workflow_async(blocked) for _ in range(50)))
        made += 50
    order.begin()
    await chain_async(1)
    order.end(blocked=made)


def first(order: Order) -> None:
    DBOS.launch()
    with SetWorkflowID("first"):
        chain(1)
    order.end()


if __name__ == "__main__":
    main(
        {
            "W1": timed(chain),
            "W2": awaited(parallel),
            "W3": awaited(many),
            "W4": timed(fibonaccis),
            "W5": first,
            "W7": timed(chain),
            "W9": awaited(beside_blocked),
        },
        ORDER,
    )
