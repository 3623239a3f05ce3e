"""
Runs the tests of playbooks for a server, in processes that have nothing of it (decision 0081).

A server runs no code of users. Tests run none either, but templates and loops take time and
memory: each run has a process of its own, which is killed when it takes too much of either.
"""

import asyncio
import sys
from collections.abc import Sequence
from tempfile import TemporaryDirectory

import msgspec

from noetl.errors import ServerRefused
from noetl.node.testing.verdict import CaseVerdict, TestsGiven, TestsTold
from noetl.tools.bounds import DEMANDED, Bounds
from noetl.tools.children import ENVIRONMENT
from noetl.tools.process.running import CommandEnd, ProcessSpec, RunningCommand

AT_ONCE = 2
"""Processes of one server; who comes meanwhile is told so."""
SECONDS = 60
MEMORY = 1024**3
"""Bytes of address space."""
LONGEST = 8 * 1024**2
"""Bytes of verdicts."""
STDOUT = 1
PROGRAM = (sys.executable, "-P", "-m", "noetl.node.testing.child")
"""-P: no module is looked for in the folder that it works in."""


class PlaybookTests:
    """One for each server."""

    def __init__(
        self, bounds: Bounds, *, seconds: float = SECONDS, program: Sequence[str] = PROGRAM
    ) -> None:
        self._bounds = bounds
        self._program = program
        self._seconds = seconds
        self._running = 0

    async def run(self, text: str, tests: str) -> list[CaseVerdict]:
        """The verdict of each test; raises ServerRefused where they cannot be run to their end."""
        if self._running >= AT_ONCE:
            says = f"{AT_ONCE} runs of tests are under way; try again in a moment"
            raise ServerRefused(says, code="busy", status=503)
        self._running += 1
        try:
            with TemporaryDirectory(prefix="noetl-tests-") as folder:
                told = await self._told(TestsGiven(text, tests), folder)
        finally:
            self._running -= 1
        if told.refused is not None:
            raise ServerRefused(told.refused, code="tests_unreadable", status=422)
        return told.tests

    async def _told(self, given: TestsGiven, folder: str) -> TestsTold:
        out, err = bytearray(), bytearray()

        def take(stream: int, piece: bytes) -> None:
            into = out if stream == STDOUT else err
            into.extend(piece)
            if len(into) > LONGEST:
                raise unfinished(f"they say more than {LONGEST:,} bytes")

        running = RunningCommand(self._order(given, folder), folder, take)
        try:
            async with asyncio.timeout(self._seconds):
                end = await asyncio.shield(running.ended)
        except TimeoutError:
            raise unfinished(f"they take longer than {self._seconds:g} s") from None
        finally:
            running.kill()
            await running.ended
        if running.refused is not None:
            raise running.refused
        if end.exit_code != 0:
            raise unfinished(why(end, err.decode("utf-8", "replace")))
        return msgspec.json.decode(out, type=TestsTold)

    def _order(self, given: TestsGiven, folder: str) -> ProcessSpec:
        return ProcessSpec(
            words=[*self._program],
            environment={**ENVIRONMENT, "HOME": folder, "TMPDIR": folder},
            stdin=msgspec.json.encode(given),
            memory=MEMORY,
            namespaces=self._bounds.namespaces,
            private=list(self._bounds.private),
            cpu_seconds=int(self._seconds) + 1,
        )


def unfinished(why: str) -> ServerRefused:
    says = f"the tests were not run to their end: {why}; run them with `noetl test`"
    return ServerRefused(says, code="tests_unfinished", status=422)


def why(end: CommandEnd, complaint: str) -> str:
    if end.lacking is not None:
        return DEMANDED
    if end.signal is not None:
        return f"their process was ended by signal {end.signal}"
    lines = [line for line in complaint.split("\n") if line.strip()]
    return f"their process ended with {lines[-1] if lines else f'exit code {end.exit_code}'}"
