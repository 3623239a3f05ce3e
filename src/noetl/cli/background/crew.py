"""Processes that a server starts beside itself, and that never outlive it: workers, shards."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from noetl.tools.children import PIPE, ourselves, spawn_async

Says = Callable[[str], None]
PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before a process that died is started again; the last one stays."""
STEADY = 60.0
"""Seconds after which a process that ran so long is no longer taken for one that cannot start."""
GRACE = 15.0
"""Seconds that processes have to end well beyond those that they let their parts run on."""
TIED = "--with-parent"
"""A process told so reads its standard input, and stops when that ends: with its server."""
Words = Callable[[int], Sequence[str]]
Tie = Callable[[], AbstractContextManager[int]]
"""What becomes the standard input of a process, and is closed here once it has it."""


def a_pipe() -> AbstractContextManager[int]:
    return contextlib.nullcontext(PIPE)


def a_worker(_: int) -> Sequence[str]:
    """What the command of a worker says."""
    return ("worker", "start", "--foreground", TIED)


class Crew:
    """
    So many processes of one kind.

    One that dies is started again. Each hangs on a pipe of the server, or on what else ties it, so
    that it also ends when the server was killed; and each has a session of its own, so that Ctrl-C
    reaches the server alone, which then lets them end well.
    """

    def __init__(
        self,
        count: int,
        environment: Mapping[str, str],
        says: Says,
        drain: float,
        *,
        what: str = "a worker",
        words: Words = a_worker,
        tie: Tie = a_pipe,
    ) -> None:
        self._count = count
        self._what, self._words, self._tie = what, words, tie
        self._grace = drain + GRACE
        self._environment = environment
        self._says = says
        self._stopping = False
        self._minds: list[asyncio.Task[None]] = []
        self._processes: set[asyncio.subprocess.Process] = set()

    def begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._minds = [loop.create_task(self._mind(place + 1)) for place in range(self._count)]

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
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)

    async def _mind(self, place: int) -> None:
        """One place in the crew: whoever dies in it is followed by another."""
        deaths = 0
        clock = asyncio.get_running_loop().time
        while not self._stopping:
            began = clock()
            code = await self._one(place)
            if self._stopping:
                return
            if clock() - began > STEADY:
                deaths = 0
            pause = PAUSES[min(deaths, len(PAUSES) - 1)]
            deaths += 1
            self._says(f"{self._what} ended with {code}; another starts in {pause:g} s")
            await asyncio.sleep(pause)

    async def _one(self, place: int) -> int:
        with self._tie() as stdin:
            process = await spawn_async(
                *ourselves(*self._words(place)),
                stdin=stdin,
                stdout=None,
                stderr=None,
                env=self._environment,
            )
        self._processes.add(process)
        if self._stopping:
            process.send_signal(signal.SIGTERM)
        try:
            return await process.wait()
        finally:
            self._processes.discard(process)
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
                await process.wait()
