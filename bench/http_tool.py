"""The http tool beside bare aiohttp, and the memory that a large body takes on its way."""

import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from bench.figure import Figure
from bench.place import Place, call_of
from bench.size import sized
from noetl.adapters.files.object_store import FileObjectStore
from noetl.kinds.http import HttpInputs
from noetl.ports.result_store import ResultStore
from noetl.tools.http.tool import HttpTool

REQUESTS, AT_ONCE, REPEATS = sized(3000), 100, sized(5, small=1)
MEGABYTES = sized(200)
ROOM = 80.0
"""How many megabytes a body of MEGABYTES may add to the process."""
_SMALL = msgspec.json.encode({"data": [{"id": n, "name": f"row {n}"} for n in range(5)]})
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


def figures() -> list[Figure]:
    with serving() as url:
        ours, bare = asyncio.run(measure(url))
        grown = measure_memory(url)
    name = f"http tool, {AT_ONCE} GETs at once"
    body = "http body of 200 MB to the store, extra RSS"
    return [
        Figure.of(name, ours, bare, target=0.5, unit="1/s", at_most=False),
        Figure.of(body, [grown], [ROOM], target=1.0, unit="MB"),
    ]


async def measure(url: str) -> tuple[list[float], list[float]]:
    """Requests per second, ours and bare in turn, after a warm-up of both."""
    tool, place = HttpTool(), Place()
    call = call_of(HttpInputs(url=f"{url}/small"))
    connector = aiohttp.TCPConnector(limit=AT_ONCE)
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(connector=connector, cookie_jar=jar) as session:

        async def ours() -> None:
            assert (await tool.call(call, place)).status == "ok"

        async def bare() -> None:
            async with session.get(f"{url}/small") as answer:
                msgspec.json.decode(await answer.read())

        rates: dict[Any, list[float]] = {ours: [], bare: []}
        for one in (ours, bare):
            await rate(one)
        for _ in range(REPEATS):
            for one in (ours, bare):
                rates[one].append(await rate(one))
        await tool.close()
    return rates[ours], rates[bare]


async def rate(ask: Callable[[], Awaitable[None]]) -> float:
    left = iter(range(REQUESTS))

    async def lane() -> None:
        for _ in left:
            await ask()

    began = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(AT_ONCE)))
    return REQUESTS / (time.perf_counter() - began)


def measure_memory(url: str) -> float:
    """Megabytes that the peak of a fresh process grows by."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    child = spawn.Process(target=fetch_large, args=(url, there))
    child.start()
    grown: float = here.recv()
    child.join()
    return grown


def fetch_large(url: str, answer: Connection) -> None:
    async def fetch() -> float:
        with tempfile.TemporaryDirectory() as folder:
            tool, place = HttpTool(), Place(ResultStore(FileObjectStore(Path(folder))))
            await tool.call(call_of(HttpInputs(url=f"{url}/small")), place)
            before = peak()
            outcome = await tool.call(call_of(HttpInputs(url=f"{url}/large")), place)
            assert outcome.status == "ok", outcome.error
            assert outcome.result["data"].size == MEGABYTES * 1_000_000
            await tool.close()
            return peak() - before

    answer.send(asyncio.run(fetch()))


def peak() -> float:
    """The high-water mark of this process alone; getrusage would count the parent's as well."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1000
    raise AssertionError("the kernel does not say how much memory was used")


@contextmanager
def serving() -> Iterator[str]:
    """A server in a process of its own, as lean as can be, so that it bounds neither side."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    child = spawn.Process(target=serve, args=(there,), daemon=True)
    child.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        child.terminate()
        child.join()


def serve(answer: Connection) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Lean, "127.0.0.1", 0)
        answer.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


class Lean(asyncio.Protocol):
    """Answers each request, as one arrives after the other."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._room = asyncio.Event()
        self._room.set()

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"GET /large"):
            self._sending = asyncio.ensure_future(self._send_large())
            return
        self._transport.write(_HEAD % len(_SMALL) + _SMALL)

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    async def _send_large(self) -> None:
        size = MEGABYTES * 1_000_000
        self._transport.write(_HEAD % size + b'"')
        block = b"x" * 100_000
        left = size - 2
        while left:
            await self._room.wait()
            self._transport.write(block[:left])
            left -= min(left, len(block))
        self._transport.write(b'"')
