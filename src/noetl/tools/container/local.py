"""One container on this machine, by podman or docker: run, watched, removed."""

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from noetl.messages.outcome import Outcome
from noetl.tools.children import NULL, PIPE, end_group, spawn_async
from noetl.tools.container.orders import ContainerSpec
from noetl.tools.container.outcomes import Ran, outcome_of, too_slow, unstarted
from noetl.tools.container.programs import (
    KEEPER,
    ContainerRuntime,
    beside,
    environment_file,
    environment_words,
    program_of,
    run_words,
    with_login,
)
from noetl.tools.process.capture import STDERR, STDOUT, Streams
from noetl.tools.process.folders import Folders
from noetl.tools.tool import ToolCall
from noetl.tools.unbroken import Stop, ends_in_time

CHUNK = 65_536
ASKED_LONG = 60.0
"""Seconds for a question to the program itself, such as what became of a container."""
GRACE = 2
"""Seconds between SIGTERM and SIGKILL."""
PREFIX = "noetl-container-"


class ContainerState(msgspec.Struct, frozen=True, rename="pascal"):
    """The part of `inspect` that tells how a container ended; both programs name it alike."""

    status: str = ""
    exit_code: int = 0
    oom_killed: bool = msgspec.field(name="OOMKilled", default=False)


class Inspected(msgspec.Struct, frozen=True, rename="pascal"):
    state: ContainerState
    image: str = ""


class Attached:
    """`ended` is done when the program is, with its exit code; or with what `take` refused."""

    def __init__(
        self, process: asyncio.subprocess.Process, streams: Streams, stdin: bytes | None
    ) -> None:
        self._process = process
        self._streams = streams
        self._refused: Exception | None = None
        self.ended = asyncio.create_task(self._follow(stdin))

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


class LocalContainers:
    """
    Containers are named after a folder that lives as long as this process, and after the process:
    those where both are gone were left by a worker that was killed, and are removed.
    """

    def __init__(self, environment: Mapping[str, str], *, grace: int = GRACE) -> None:
        self._environment = environment
        self._grace = grace
        self._folders = Folders("container")
        self._number = count(1)
        self._swept: set[str] = set()

    async def run(
        self,
        call: ToolCall[Any],
        order: ContainerSpec,
        credential: Mapping[str, Any] | None,
        streams: Streams,
        stop: Stop,
    ) -> Outcome:
        program = program_of(call.inputs.engine, self._environment)
        folder, total = Path(self._folders.new()), call.timeout.total
        try:
            await self._sweep(program)
            if credential is not None:
                program = with_login(program, folder, credential)
            name = f"{folder.parent.name}-{os.getpid()}-{next(self._number)}"
            with environment_file(order) as file:
                given = environment_words(order, file)
                process = await spawn_async(
                    *run_words(program, order, name, socket.gethostname(), given),
                    stdin=NULL if order.stdin is None else PIPE,
                    stderr=PIPE,
                    fds=(file,),
                    env={**program.environment, **beside(order)},
                    cwd=folder,
                )
            attached = Attached(process, streams, order.stdin)
            try:
                late = not await ends_in_time(attached.ended, stop, total)
                if late:
                    await self._stop(program, name, attached)
                ran = await inspected(program, name, order)
            finally:
                await remove(program, name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if not late:
            attached.ended.result()  # raises what could not be kept
        printed = await streams.finish()
        if late:
            return too_slow(total or 0.0, ran, printed)
        if ran.exit_code is None:
            return unstarted(ran, printed.complaint)
        return outcome_of(ran, printed, order.memory)

    def close(self) -> None:
        self._folders.close()

    async def _stop(self, program: ContainerRuntime, name: str, attached: Attached) -> None:
        """A container that is not there yet (its image is being pulled) needs no stopping."""
        code, _ = await ask(program, "stop", "--time", str(self._grace), name)
        if code == 0:
            await asyncio.wait({attached.ended}, timeout=self._grace)
        attached.kill()
        await asyncio.wait({attached.ended})
        attached.ended.exception()

    async def _sweep(self, program: ContainerRuntime) -> None:
        if program.path in self._swept:
            return
        self._swept.add(program.path)
        mine = f"label={KEEPER}={socket.gethostname()}"
        _, listed = await ask(program, "ps", "--all", "--filter", mine, "--format", "{{.Names}}")
        for name in listed.decode("utf-8", "replace").split():
            if abandoned(name):
                await remove(program, name)


def abandoned(name: str) -> bool:
    """Not by the folder alone: another worker's place for such may not be visible here."""
    keeper, _, pid = name.rpartition("-")[0].rpartition("-")
    if not keeper.startswith(PREFIX) or Path("/proc", pid).exists():
        return False
    return not Path(tempfile.gettempdir(), keeper).exists()


async def inspected(program: ContainerRuntime, name: str, order: ContainerSpec) -> Ran:
    """How it ended; one that was created and never started has no exit code."""
    ran = Ran(engine=program.name, image=order.image)
    code, found = await ask(program, "inspect", "--type", "container", name)
    if code != 0:
        return ran
    (container,) = msgspec.json.decode(found, type=list[Inspected])
    state = container.state
    started = state.status not in ("created", "initialized", "configured")
    return msgspec.structs.replace(
        ran,
        image_id=container.image.removeprefix("sha256:") or None,
        exit_code=state.exit_code if started else None,
        oom_killed=state.oom_killed,
    )


async def remove(program: ContainerRuntime, name: str) -> None:
    """At once, whatever it does; docker never waits, podman would."""
    at_once = ("--time", "0") if program.name == "podman" else ()
    await ask(program, "rm", "--force", "--volumes", *at_once, name)


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
