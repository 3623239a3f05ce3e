"""Workers that a server starts beside itself, and that never outlive it."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping

from noetl.tools.children import PIPE, ourselves, spawn_async

Says = Callable[[str], None]
PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before a worker that died is started again; the last one stays."""
GRACE = 15.0
"""Seconds that workers have to end well beyond those that they let their parts run on."""
TIED = "--with-parent"
"""A worker told so reads its standard input, and stops when that ends: with its server."""


class Crew:
    """
    So many worker processes.

    One that dies is started again. Each hangs on a pipe of the server, so that it also ends when
    the server was killed; and each has a session of its own, so that Ctrl-C reaches the server
    alone, which then lets the workers end well.
    """

    def __init__(
        self, count: int, environment: Mapping[str, str], says: Says, drain: float
    ) -> None:
        self._count = count
        self._grace = drain + GRACE
        self._environment = environment
        self._says = says
        self._stopping = False
        self._minds: list[asyncio.Task[None]] = []
        self._workers: set[asyncio.subprocess.Process] = set()

    def begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._minds = [loop.create_task(self._mind()) for _ in range(self._count)]

    async def end(self, hurry: asyncio.Event) -> None:
        """Let all of them end: what they run gets its time, and what does not end is ended."""
        self._stopping = True
        self._tell()
        if not self._minds:
            return
        told = asyncio.get_running_loop().create_task(self._pass_on(hurry))
        _, late = await asyncio.wait(self._minds, timeout=self._grace)
        told.cancel()
        for mind in late:
            mind.cancel()
        await asyncio.gather(told, *late, return_exceptions=True)

    async def _pass_on(self, hurry: asyncio.Event) -> None:
        await hurry.wait()
        self._tell()

    def _tell(self) -> None:
        for worker in self._workers:
            with contextlib.suppress(ProcessLookupError):
                worker.send_signal(signal.SIGTERM)

    async def _mind(self) -> None:
        """One place in the crew: whoever dies in it is followed by another."""
        deaths = 0
        while not self._stopping:
            code = await self._one()
            if self._stopping:
                return
            pause = PAUSES[min(deaths, len(PAUSES) - 1)]
            deaths += 1
            self._says(f"a worker ended with {code}; another starts in {pause:g} s")
            await asyncio.sleep(pause)

    async def _one(self) -> int:
        worker = await spawn_async(
            *ourselves("worker", "start", "--foreground", TIED),
            stdin=PIPE,
            stdout=None,
            stderr=None,
            env=self._environment,
        )
        self._workers.add(worker)
        if self._stopping:
            worker.send_signal(signal.SIGTERM)
        try:
            return await worker.wait()
        finally:
            self._workers.discard(worker)
            if worker.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker.pid, signal.SIGKILL)
                await worker.wait()
