"""What a call of the `python` kind costs: beside a raw commit and beside a bare round trip."""

import asyncio
import os
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import apsw
import uvloop

from bench.figure import Figure
from bench.place import Place, call_of
from bench.size import sized
from noetl.kinds.code import PythonInputs
from noetl.tools.python.tool import PythonTool

CALLS = sized(40)
REPEATS = sized(15, small=1)
FIBONACCI = """
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

result = fibonacci(n)
"""
ROW = "x" * 400
LOOK = 16
"""
Times the echo of a byte. After code that imports, a child looks over its modules, files, threads
and folder before it serves another call (TOOL-3): some 150 µs that no echo has to pay.
"""


def figures() -> list[Figure]:
    """Forty calls against forty commits, and against forty round trips to an idle process."""
    with one_processor():
        return uvloop.run(measured())


@contextmanager
def one_processor() -> Iterator[None]:
    """
    Of this process, and of those that it starts meanwhile.

    A wake-up of another processor costs more than all the rest of a round trip. Where each process
    runs is the scheduler's choice: a child on this processor beside an echo on another one, or the
    other way round, makes the same code look three times better or worse.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


async def measured() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        tool, place = PythonTool(Path(folder)), Place()
        connection = opened(Path(folder) / "log.sqlite")
        echo = Echo()
        fibonacci, nothing, imports = (
            call_of(PythonInputs(code=code, args={"n": 10}))
            for code in (FIBONACCI, "result = n", "import json\nresult = n")
        )
        for call in (fibonacci, nothing, imports):
            await tool.call(call, place)
        rounds: dict[str, list[float]] = {}
        for _ in range(REPEATS):
            for name, work in (
                ("fibonacci", lambda: tool.call(fibonacci, place)),
                ("nothing", lambda: tool.call(nothing, place)),
                ("imports", lambda: tool.call(imports, place)),
                ("echo", echo.ask),
                ("commit", lambda: commit(connection)),
            ):
                rounds.setdefault(name, []).append(await microseconds(work))
        echo.close()
        connection.close()
        await tool.close()
    return [
        Figure.of("python task of fibonacci(10)", rounds["fibonacci"], rounds["commit"], 6, "µs"),
        Figure.of("python call, round trip", rounds["nothing"], rounds["echo"], 4, "µs"),
        Figure.of("python call with an import", rounds["imports"], rounds["echo"], LOOK, "µs"),
    ]


async def microseconds(work: Callable[[], Awaitable[Any]]) -> float:
    """Of one piece of work: the median of forty, since others may have the processor meanwhile."""
    found = []
    for _ in range(CALLS):
        begun = perf_counter()
        await work()
        found.append(perf_counter() - begun)
    return median(found) * 1e6


def opened(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute("pragma journal_mode = wal; pragma synchronous = full")
    connection.execute("create table log (row text)")
    return connection


async def commit(connection: apsw.Connection) -> None:
    connection.execute("insert into log values (?)", (ROW,))


class Echo:
    """The bare limit: a byte to another process and back, waited for by the event loop."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            self._ours.close()
            while piece := theirs.recv(64):
                theirs.send(piece)
            os._exit(0)
        theirs.close()
        self._ours.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._ours.fileno(), self._come)

    async def ask(self) -> None:
        self._answer = self._loop.create_future()
        self._ours.send(b".")
        await self._answer

    def _come(self) -> None:
        self._answer.set_result(self._ours.recv(64))

    def close(self) -> None:
        self._loop.remove_reader(self._ours.fileno())
        self._ours.close()
        os.waitpid(self._pid, 0)


if __name__ == "__main__":
    for figure in figures():
        print(figure)
