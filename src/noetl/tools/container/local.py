"""One container on this machine, by podman or docker: run, watched, removed."""

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from noetl.messages.outcome import Outcome
from noetl.tools.container.attached import Attached, ask
from noetl.tools.container.orders import ContainerSpec
from noetl.tools.container.outcomes import Ran, outcome_of, too_slow, unstarted
from noetl.tools.container.programs import (
    KEEPER,
    ContainerRuntime,
    environment_with,
    program_of,
    run_words,
    with_login,
)
from noetl.tools.process.capture import LONGEST, Streams
from noetl.tools.process.folders import Folders
from noetl.tools.tool import ToolCall, Workplace
from noetl.tools.unbroken import Stop, ends_in_time

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


class LocalContainers:
    """
    Containers are named after a folder that lives as long as this process, and after the process:
    those where both are gone were left by a worker that was killed, and are removed.
    """

    def __init__(
        self, environment: Mapping[str, str], *, grace: int = GRACE, longest: int = LONGEST
    ) -> None:
        self._environment = environment
        self._grace = grace
        self._longest = longest
        self._folders = Folders("container")
        self._number = count(1)
        self._swept: set[str] = set()

    async def run(
        self,
        call: ToolCall[Any],
        order: ContainerSpec,
        credential: Mapping[str, Any] | None,
        workplace: Workplace,
        stop: Stop,
    ) -> Outcome:
        program = program_of(call.inputs.engine, self._environment)
        folder = Path(self._folders.new())
        streams = Streams(call, workplace, self._longest)
        try:
            await self._sweep(program)
            if credential is not None:
                program = with_login(program, folder, credential)
            name = f"{folder.parent.name}-{os.getpid()}-{next(self._number)}"
            words = run_words(program, order, name, socket.gethostname(), folder)
            environment = environment_with(program, order)
            attached = await Attached.start(words, environment, folder, streams, order.stdin)
            return await self._watch(program, name, order, attached, streams, call, stop)
        finally:
            await streams.discard()
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        self._folders.close()

    async def _watch(
        self,
        program: ContainerRuntime,
        name: str,
        order: ContainerSpec,
        attached: Attached,
        streams: Streams,
        call: ToolCall[Any],
        stop: Stop,
    ) -> Outcome:
        """To its end; what a stopped call comes to nobody reads."""
        total = call.timeout.total
        try:
            late = not await ends_in_time(attached.ended, stop, total)
            if late:
                await self._stop(program, name, attached)
            ran = await inspected(program, name, order)
        finally:
            await remove(program, name)
        if not late:
            attached.ended.result()  # raises what could not be kept
        printed = await streams.finish()
        if late:
            return too_slow(total or 0.0, ran, printed)
        if ran.exit_code is None:
            return unstarted(ran, printed.complaint)
        return outcome_of(ran, printed, order.memory)

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
