"""Temporal: workflows and activities of one worker, on a development server with a file."""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

from bench.peers.programs.telling import Order, asked, fibonacci, linger, main

AT_ONCE = 100
QUEUE = "bench"
SOON = timedelta(seconds=120)
DONE: list[Order] = []


@activity.defn
async def nothing() -> None:
    for order in DONE:
        order.one()


@activity.defn
async def fib() -> int:
    for order in DONE:
        order.one()
    return fibonacci(10)


@workflow.defn
class Chain:
    """Activities one after the other."""

    @workflow.run
    async def run(self, what: str, count: int) -> None:
        for _ in range(count):
            await workflow.execute_activity(what, start_to_close_timeout=SOON)


@workflow.defn
class Spread:
    """Activities at once, and a join."""

    @workflow.run
    async def run(self, count: int) -> None:
        free = asyncio.Semaphore(AT_ONCE)

        async def one() -> None:
            async with free:
                await workflow.execute_activity("nothing", start_to_close_timeout=SOON)

        await asyncio.gather(*(one() for _ in range(count)))


@workflow.defn
class Blocked:
    """It waits for a signal that nobody sends."""

    def __init__(self) -> None:
        self._go = False

    @workflow.signal
    def go(self) -> None:
        self._go = True

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: self._go)


class Caller:
    """Names workflows, so that no two are the same."""

    def __init__(self, client: Client) -> None:
        self._client, self._made = client, 0

    async def call(self, flow: Any, *args: object) -> None:
        await self._client.execute_workflow(flow, args=args, id=self._name(), task_queue=QUEUE)

    async def start(self, flow: Any, *args: object) -> None:
        await self._client.start_workflow(flow, args=args, id=self._name(), task_queue=QUEUE)

    def _name(self) -> str:
        self._made += 1
        return f"{ORDER.work}-{self._made}"


async def measured(order: Order) -> None:
    client = await Client.connect(order.url)
    caller = Caller(client)
    worker = Worker(
        client,
        task_queue=QUEUE,
        workflows=[Chain, Spread, Blocked],
        activities=[nothing, fib],
        max_concurrent_activities=AT_ONCE,
    )
    async with worker:
        if order.work != "W5":
            await caller.call(Chain.run, "nothing", 1)
            order.begin()
        DONE.append(order)
        told = await WORKS[order.work](order, caller)
        order.end(**(told or {}))
        await linger()


async def chain(order: Order, caller: Caller) -> None:
    await caller.call(Chain.run, "nothing", order.count)


async def fibonaccis(order: Order, caller: Caller) -> None:
    await caller.call(Chain.run, "fib", order.count)


async def parallel(order: Order, caller: Caller) -> None:
    await caller.call(Spread.run, order.count)


async def many(order: Order, caller: Caller) -> None:
    await asyncio.gather(*(caller.call(Chain.run, "nothing", 5) for _ in range(order.count)))


async def beside_blocked(order: Order, caller: Caller) -> dict[str, int]:
    made = 0
    while made < order.count and order.took < order.bound / 2:
        await asyncio.gather(*(caller.start(Blocked.run) for _ in range(50)))
        made += 50
    order.begin()
    await caller.call(Chain.run, "nothing", 1)
    return {"blocked": made}


WORKS: dict[str, Any] = {
    "W1": chain,
    "W2": parallel,
    "W3": many,
    "W4": fibonaccis,
    "W5": chain,
    "W7": chain,
    "W9": beside_blocked,
}
ORDER = asked() if __name__ == "__main__" else Order("", 0, "", "", "0")
if __name__ == "__main__":
    main({work: lambda order: asyncio.run(measured(order)) for work in WORKS}, ORDER)
