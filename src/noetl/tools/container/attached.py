"""A container while it runs, seen from the worker: a command line with its streams."""

import asyncio
from contextlib import suppress
from pathlib import Path

from noetl.tools.children import NULL, PIPE, end_group, spawn_async
from noetl.tools.container.programs import ContainerRuntime
from noetl.tools.process.capture import STDERR, STDOUT, Streams

CHUNK = 65_536
ASKED_LONG = 60.0
"""Seconds for a question to the program itself, such as what became of a container."""


class Attached:
    """`ended` is done when the program is, with its exit code; or with what `take` refused."""

    def __init__(
        self, process: asyncio.subprocess.Process, streams: Streams, stdin: bytes | None
    ) -> None:
        self._process = process
        self._streams = streams
        self._refused: Exception | None = None
        self.ended = asyncio.create_task(self._follow(stdin))

    @classmethod
    async def start(
        cls,
        words: list[str],
        environment: dict[str, str],
        folder: Path,
        streams: Streams,
        stdin: bytes | None,
    ) -> "Attached":
        given = NULL if stdin is None else PIPE
        process = await spawn_async(*words, stdin=given, stderr=PIPE, env=environment, cwd=folder)
        return cls(process, streams, stdin)

    def kill(self) -> None:
        """End the program; the container is another matter."""
        if self._process.returncode is None:
            end_group(self._process.pid)

    async def _follow(self, stdin: bytes | None) -> int:
        out, err = self._process.stdout, self._process.stderr
        assert out is not None, "started with a pipe"
        assert err is not None, "started with a pipe"
        feeding = asyncio.create_task(self._feed(stdin)) if stdin is not None else None
        await asyncio.gather(self._read(out, STDOUT), self._read(err, STDERR))
        if feeding is not None:
            feeding.cancel()
        code = await self._process.wait()
        if self._refused is not None:
            raise self._refused
        return code

    async def _read(self, pipe: asyncio.StreamReader, stream: int) -> None:
        """To the end, even if nothing more can be kept: a full pipe would never be closed."""
        while piece := await pipe.read(CHUNK):
            if self._refused is None:
                try:
                    self._streams.take(stream, piece)
                except Exception as refusal:
                    self._refused = refusal
                    self.kill()

    async def _feed(self, stdin: bytes) -> None:
        pipe = self._process.stdin
        assert pipe is not None, "started with a pipe"
        with suppress(ConnectionError):  # it does not want to read; that is its own affair
            pipe.write(stdin)
            await pipe.drain()
            pipe.close()
            await pipe.wait_closed()


async def ask(program: ContainerRuntime, *words: str) -> tuple[int, bytes]:
    """Exit code and output of a short question; 124 where it does not answer."""
    process = await spawn_async(program.path, *words, env=program.environment)
    try:
        async with asyncio.timeout(ASKED_LONG):
            out, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return 124, b""
    return process.returncode or 0, out
