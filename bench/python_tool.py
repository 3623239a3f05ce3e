"""Calls of the `python` kind in parallel, beside bare round trips to warm children."""

import asyncio
import socket
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from bench.figure import Figure
from bench.place import Place, call_of
from bench.size import sized
from noetl.kinds.code import PythonInputs
from noetl.tools.python.child import StartedChild, start
from noetl.tools.python.tool import PythonTool, request_of

CALLS, AT_ONCE, REPEATS = sized(4_000), 8, sized(5, small=1)
INPUTS = PythonInputs(code="result = {'id': n, 'words': [str(n)] * 10}", args={"n": 7})


def figures() -> list[Figure]:
    ours, bare = uvloop.run(measured())
    name = f"python tool, {AT_ONCE} calls at once"
    return [Figure.of(name, ours, bare, target=0.5, unit="1/s", at_most=False)]


async def measured() -> tuple[list[float], list[float]]:
    """Calls per second, ours and bare in turn, after a warm-up of both."""
    with tempfile.TemporaryDirectory() as folder:
        tool, place = PythonTool(Path(folder), children=AT_ONCE), Place()
        call = call_of(INPUTS)

        async def ours(_: int) -> None:
            assert (await tool.call(call, place)).status == "ok"

        children = [Bare(folder) for _ in range(AT_ONCE)]

        async def bare(lane: int) -> None:
            await children[lane].ask()

        rates: dict[Any, list[float]] = {ours: [], bare: []}
        for one in (ours, bare):
            await rate(one)
        for _ in range(REPEATS):
            for one in (ours, bare):
                rates[one].append(await rate(one))
        for child in children:
            child.close()
        await tool.close()
    return rates[ours], rates[bare]


async def rate(ask: Callable[[int], Awaitable[None]]) -> float:
    left = iter(range(CALLS))

    async def lane(number: int) -> None:
        for _ in left:
            await ask(number)

    began = time.perf_counter()
    await asyncio.gather(*(lane(number) for number in range(AT_ONCE)))
    return CALLS / (time.perf_counter() - began)


class Bare:
    """A warm child with nothing around it: a frame there, a frame back, read as JSON."""

    def __init__(self, folder: str) -> None:
        self._started: StartedChild = start(sys.executable, folder, "off")
        self._socket: socket.socket = self._started.connection
        request = request_of(INPUTS, "", 2**31, 600)
        self._frame = len(request).to_bytes(4, "big") + request

    async def ask(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._socket, self._frame)
        answer = await loop.sock_recv(self._socket, 65_536)
        assert msgspec.json.decode(answer[5:])["id"] == 7

    def close(self) -> None:
        self._started.end()


if __name__ == "__main__":
    for figure in figures():
        print(figure)
