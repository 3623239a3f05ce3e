"""What a limit that is not reached costs a start: one question more, asked for many at once."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import uvloop
from tests.support.postgres import running

from bench.figure import Figure
from bench.playbooks import HEAD
from bench.size import sized
from noetl.node.server import ServerNode
from noetl.settings import Settings

STARTS = sized(2_000, small=64)
AT_ONCE = 64
"""Clients that ask at the same time."""
REPEATS = sized(7, small=1)
LIMIT = "executor: { spec: { limit: { at_once: 1000000 } } }\n"
STEPS = "workflow: [ { step: start, tool: [ { a: { kind: noop } } ] } ]\n"


def figures() -> Iterator[Figure]:
    with (
        running("fsync=on") as server,
        server.fresh_database() as database,
        TemporaryDirectory() as folder,
    ):
        yield uvloop.run(measure(Settings(home=Path(folder), db=database.url)))


async def measure(settings: Settings) -> Figure:
    node = await ServerNode.open(settings, says=lambda _: None)
    free, _ = await node.register(HEAD.replace("path: ", "path: free/") + STEPS)
    limited, _ = await node.register(HEAD.replace("path: ", "path: limited/") + LIMIT + STEPS)
    plain: list[float] = []
    bounded: list[float] = []
    for _ in range(REPEATS + 1):  # the first warms up
        plain.append(await starts(node, free.playbook_id))
        bounded.append(await starts(node, limited.playbook_id))
    await node.close()
    name = "starts/s under a limit / without"
    return Figure.of(name, bounded[1:], plain[1:], 0.95, "/s", at_most=False)


async def starts(node: ServerNode, playbook_id: str) -> float:
    """How many a second, by clients that each wait for their answer; the ends included."""

    async def client() -> None:
        for _ in range(max(1, STARTS // AT_ONCE)):
            row = await node.execute(playbook_id=playbook_id, payload={})
            await node.ended(row.execution_id, 60.0)

    began = perf_counter()
    await asyncio.gather(*(client() for _ in range(AT_ONCE)))
    return AT_ONCE * max(1, STARTS // AT_ONCE) / (perf_counter() - began)
