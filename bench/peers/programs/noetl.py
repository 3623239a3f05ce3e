"""Ours on SQLite in one process, as `noetl run` is put together."""

import asyncio
import gc
from typing import Any

import uvloop

from bench.peers.programs.telling import Order, asked, linger, main
from bench.playbooks import FIBONACCI, HEAD, NOOP, chain, turns
from noetl.control.waits_held import pending
from noetl.messages.events import Event, IterationDone, StepDone
from noetl.node.local import LocalNode
from noetl.server.active import ActiveExecution
from noetl.server.replay import replay
from noetl.settings import Settings

PYTHON = '    tool:\n      - task: {kind: python, code: "result = 1"}\n'
WAIT = "    tool:\n      - rest: {kind: wait, signal: never}\n"
AT_ONCE = 500
ORDER = asked()
TASK = {"noop": NOOP, "python": PYTHON}[ORDER.url]
"""Which kind of task is measured: the address of other peers has it here."""


async def opened(order: Order) -> LocalNode:
    local = await LocalNode.open(Settings(home=order.folder / "home"))

    def note(_: ActiveExecution, events: list[Event]) -> None:
        order.done += sum(type(event) in (StepDone, IterationDone) for event in events)

    local.server.watchers.append(note)
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    return local


async def run(local: LocalNode, text: str, **payload: Any) -> None:
    active = await local.run_text(text, folder=None, payload=payload)
    await active.finished
    assert active.execution.status == "completed", active.execution.error
    local.server.release(active.execution.execution_id)


async def measured(order: Order) -> None:
    local = await opened(order)
    if order.work != "W5":
        await run(local, chain(1, TASK))
        order.begin()
    told = await WORKS[order.work](order, local)
    order.end(**(told or {}))
    await linger()


async def line(order: Order, local: LocalNode) -> None:
    await run(local, chain(order.count, TASK))


async def fibonaccis(order: Order, local: LocalNode) -> None:
    await run(local, chain(order.count, FIBONACCI))


async def parallel(order: Order, local: LocalNode) -> None:
    each = (
        f'{HEAD}workflow:\n  - step: each\n    loop:\n      in: "{{{{ workload.numbers }}}}"\n'
        f"      iterator: number\n      spec: {{mode: parallel, max_in_flight: 100}}\n{TASK}"
        f"    next: {{arcs: [{{step: join}}]}}\n  - step: join\n{TASK}"
    )
    await run(local, each, numbers=list(range(order.count)))


async def many(order: Order, local: LocalNode) -> None:
    text = chain(5, TASK)
    await asyncio.gather(*(run(local, text) for _ in range(order.count)))


async def long_history(order: Order, local: LocalNode) -> dict[str, Any]:
    """An execution is left with so many events; what it takes to read its state back."""
    text = turns(order.count)
    active = await local.run_text(text, folder=None, payload={})
    left = asyncio.get_running_loop().create_future()

    def watch(seen: ActiveExecution, _: list[Event]) -> None:
        if seen is active and not left.done() and active.execution.seq >= order.count:
            local.server.release(active.execution.execution_id)
            left.set_result(None)

    local.server.watchers.append(watch)
    await left
    while active.uncommitted:
        await asyncio.sleep(0)
    plan = (await local.state(active.execution.execution_id))[1]
    order.begin()
    await replay(local.storage.log, active.execution.execution_id, plan)
    return {"events": active.execution.seq}


async def beside_blocked(order: Order, local: LocalNode) -> dict[str, Any]:
    text = chain(1, WAIT)
    made: list[ActiveExecution] = []
    while len(made) < order.count:
        some = (local.run_text(text, folder=None, payload={}) for _ in range(AT_ONCE))
        made += await asyncio.gather(*some)
        await asyncio.gather(*(one.settled() for one in made[-AT_ONCE:]))
    while not all(any(pending(one.execution)) for one in made):
        await asyncio.sleep(0.01)
    order.begin()
    await run(local, chain(1, TASK))
    return {"blocked": len(made)}


WORKS: dict[str, Any] = {
    "W1": line,
    "W2": parallel,
    "W3": many,
    "W4": fibonaccis,
    "W5": line,
    "W7": line,
    "W8": long_history,
    "W9": beside_blocked,
}
if __name__ == "__main__":
    main({work: lambda order: uvloop.run(measured(order)) for work in WORKS}, ORDER)
