"""Runs containers for tasks of kind `container`: podman or docker here, or a Kubernetes job."""

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
from noetl.tools.refusal import Refusal, unforeseen
from noetl.tools.tool import ToolCall, Workplace
from noetl.tools.unbroken import Stop, Unbroken


class ContainerTool:
    """Each call has a container of its own; it is removed before the call ends."""

    keeps_time = True

    def __init__(
        self, environment: Mapping[str, str] = os.environ, *, every: float = EVERY, **more: Any
    ) -> None:
        self._local = LocalContainers(environment, **more)
        self._cluster = ClusterContainers(every=every)
        self._work = Unbroken()

    async def call(self, call: ToolCall[ContainerInputs], workplace: Workplace) -> Outcome:
        return await self._work.run(lambda stop: self._run(call, workplace, stop))

    async def forget(self, scratch: str) -> None:
        """Nothing outlives a call."""

    async def close(self) -> None:
        """End what still runs."""
        await self._work.close()
        self._local.close()

    async def _run(
        self, call: ToolCall[ContainerInputs], workplace: Workplace, stop: Stop
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
        self, call: ToolCall[ContainerInputs], workplace: Workplace, stop: Stop
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
