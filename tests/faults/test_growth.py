"""What is alive in servers and workers does not grow with what has ended."""

import asyncio
import gc
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support.canned import CannedTools
from tests.support.cluster import PATIENCE, until
from tests.support.direct_link import DirectLink, Exchange
from tests.support.steps import arc, call, loop, playbook, step
from tests.support.trial import FULL, sized

from noetl.adapters.files.object_store import FileObjectStore
from noetl.adapters.sqlite.storage import open_storage
from noetl.messages.outcome import Outcome
from noetl.node.server import ServerNode
from noetl.node.work_plane import WorkPlane
from noetl.ports.result_store import ResultStore
from noetl.settings import Settings
from noetl.tools.tool import ToolCall, Workplace

FEW, MANY = sized(60, 1_000), sized(300, 100_000)
AT_ONCE = 50
SPARE = 40
"""Objects of one kind that may be more by chance: what is under way differs from time to time."""
MORE_MEMORY = 1.1
"""Times as much as before, at full size: at a small one the allocator's own pages count more."""
TEXT = playbook(
    step("start", call("fetch"), call("store"), arcs=[arc("each")]),
    step("each", call("one"), loop=loop([1, 2, 3], mode="parallel", flight=2), arcs=[arc("end")]),
    step("end", call("tell")),
)


class Forgetful(CannedTools):
    """It keeps no list of its calls: that would grow."""

    async def call(self, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        self.calls.clear()
        return await super().call(call, workplace)


class Plant:
    """A server on a disk, and a worker, in this process."""

    def __init__(self, server: ServerNode, worker: WorkPlane) -> None:
        self.server, self.worker = server, worker
        self.done = 0

    async def run(self, until_done: int) -> None:
        """So many executions have ended in all."""
        entry, _ = await self.server.register(TEXT)
        while self.done < until_done:
            wanted = min(AT_ONCE, until_done - self.done)
            rows = [
                await self.server.execute(playbook_id=entry.playbook_id, payload={})
                for _ in range(wanted)
            ]
            for row in rows:
                async with asyncio.timeout(PATIENCE):
                    while not await self.server.ended(row.execution_id, 1.0):
                        await asyncio.sleep(0)
            self.done += wanted
        await until(lambda: not self.server.server.owned and not self.worker.session.holds)

    def alive(self) -> "Alive":
        gc.collect()
        kinds = Counter(
            f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects()
        )
        return Alive(
            Counter({kind: many for kind, many in kinds.items() if kind.startswith("noetl.")}),
            len(asyncio.all_tasks()),
            len(os.listdir("/proc/self/fd")),
            resident(),
        )


class Alive:
    """What there is at a moment when nothing runs."""

    def __init__(self, kinds: Counter[str], tasks: int, files: int, memory: int) -> None:
        self.kinds, self.tasks, self.files, self.memory = kinds, tasks, files, memory

    def more_than(self, before: "Alive") -> dict[str, int]:
        """What has grown by more than chance."""
        grown = {kind: many - before.kinds[kind] for kind, many in self.kinds.items()}
        grown |= {"tasks": self.tasks - before.tasks, "files": self.files - before.files}
        return {kind: many for kind, many in grown.items() if many > SPARE}


def resident() -> int:
    """Megabytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20


async def planted(home: Path) -> Plant:
    settings = Settings(home=home)
    exchange = Exchange()
    results = ResultStore(FileObjectStore(home / "results"))
    server = ServerNode(settings, await open_storage(home), results=results, says=lambda _: None)
    await server.serve()
    server.dispatcher.notifiers.append(exchange.attach(server.dispatcher))
    worker = WorkPlane(
        settings,
        DirectLink(exchange, poll=0.05, patience=60.0),
        results=results,
        tools=Forgetful(),
        says=lambda _: None,
        name="worker",
    )
    return Plant(server, worker)


@pytest.mark.rule("SRV-3")
def test_what_is_alive_does_not_grow_with_what_has_ended(tmp_path: Path) -> None:
    async def whole() -> tuple[Alive, Alive]:
        plant = await planted(tmp_path)
        working = asyncio.get_running_loop().create_task(plant.worker.run())
        await plant.run(FEW)
        before = plant.alive()
        await plant.run(FEW + MANY)
        after = plant.alive()
        await plant.worker.drain(0.0)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await plant.worker.close()
        await plant.server.close()
        return before, after

    before, after = asyncio.run(whole())
    print(
        f"after {FEW} and {FEW + MANY} executions: objects {before.kinds.total()} and "
        f"{after.kinds.total()}, tasks {before.tasks} and {after.tasks}, files {before.files} and "
        f"{after.files}, memory {before.memory} and {after.memory} MB"
    )
    assert MANY > 5 * SPARE
    assert after.more_than(before) == {}
    assert not FULL or after.memory <= MORE_MEMORY * before.memory
