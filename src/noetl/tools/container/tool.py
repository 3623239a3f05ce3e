"""Runs containers for tasks of kind `container`: podman or docker here, or a Kubernetes job."""

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.errors import CredentialMissing
from noetl.kinds.code import ContainerInputs
from noetl.messages.outcome import Outcome, failed
from noetl.tools.container.kubernetes import EVERY, ClusterContainers
from noetl.tools.container.local import LocalContainers
from noetl.tools.container.orders import order_of
from noetl.tools.container.outcomes import NOT_RUN
from noetl.tools.process.tool import tell
from noetl.tools.refusal import Refusal, unforeseen
from noetl.tools.tool import Call, Workplace


class ContainerTool:
    """
    Each call has a container of its own, removed when it ends.

    The work is a task that nobody cancels: cancelling the call tells it to stop, and then waits
    until the container is gone, so that none outlives the call that started it.
    """

    def __init__(
        self, environment: Mapping[str, str] = os.environ, *, every: float = EVERY, **more: Any
    ) -> None:
        self._local = LocalContainers(environment, **more)
        self._cluster = ClusterContainers(every=every)
        self._work: dict[asyncio.Task[Outcome], asyncio.Future[None]] = {}

    async def call(self, call: Call[ContainerInputs], workplace: Workplace) -> Outcome:
        loop = asyncio.get_running_loop()
        stop: asyncio.Future[None] = loop.create_future()
        work = loop.create_task(self._run(call, workplace, stop))
        self._work[work] = stop
        work.add_done_callback(lambda done: self._work.pop(done, None))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            tell(stop)
            await asyncio.shield(work)
            raise

    async def forget(self, scratch: str) -> None:
        """Nothing outlives a call."""

    async def close(self) -> None:
        """End what still runs."""
        for stop in self._work.values():
            tell(stop)
        while self._work:
            await asyncio.gather(*self._work, return_exceptions=True)
        self._local.close()

    async def _run(
        self, call: Call[ContainerInputs], workplace: Workplace, stop: "asyncio.Future[None]"
    ) -> Outcome:
        try:
            outcome = await self._run_there(call, workplace, stop)
        except Refusal as refusal:
            outcome = refusal.outcome
        except CredentialMissing as missing:
            outcome = failed("auth", str(missing))
        except OSError as fault:
            outcome = failed(
                "container", f"the container cannot be started: {fault}", retryable=True
            )
        except Exception as fault:
            outcome = unforeseen(fault)
        if outcome.block:
            return outcome
        return msgspec.structs.replace(outcome, block={**NOT_RUN, "image": call.inputs.image})

    async def _run_there(
        self, call: Call[ContainerInputs], workplace: Workplace, stop: "asyncio.Future[None]"
    ) -> Outcome:
        order = order_of(call)
        credential = await workplace.unlock(call.inputs.auth) if call.inputs.auth else None
        place = self._cluster if in_cluster(call.inputs, credential) else self._local
        return await place.run(call, order, credential, workplace, stop)


def in_cluster(inputs: ContainerInputs, credential: Mapping[str, Any] | None) -> bool:
    """A task that says nothing runs where its credential is for."""
    if inputs.engine is not None:
        return inputs.engine == "kubernetes"
    kind = str((credential or {}).get("kind", "")).removesuffix("_credential")
    return kind == "kubernetes"
