"""Runs containers for tasks of kind `container`: podman or docker here, or a Kubernetes job."""

import os
from collections.abc import Mapping
from typing import Any

from noetl.kinds.code import ContainerInputs
from noetl.messages.outcome import Outcome, failed
from noetl.tools.container.kubernetes import EVERY, ClusterContainers
from noetl.tools.container.local import GRACE, LocalContainers
from noetl.tools.container.orders import order_of
from noetl.tools.container.outcomes import NOT_RUN
from noetl.tools.process.capture import LONGEST, Streams
from noetl.tools.tool import ToolCall, Workplace
from noetl.tools.unbroken import Stop, UnbrokenTool


class ContainerTool(UnbrokenTool):
    """Each call has a container of its own; it is removed before the call ends."""

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        *,
        every: float = EVERY,
        grace: int = GRACE,
        longest: int = LONGEST,
    ) -> None:
        super().__init__()
        self._longest = longest
        self._local = LocalContainers(environment, grace=grace)
        self._cluster = ClusterContainers(every=every)

    async def close(self) -> None:
        await super().close()
        self._local.close()

    def _failure(self, call: ToolCall[Any], fault: Exception) -> Outcome | None:
        del call
        if not isinstance(fault, OSError):
            return None
        says = f"the container cannot be started: {fault}"
        return failed("container", says, retryable=True)

    def _block(self, call: ToolCall[ContainerInputs]) -> dict[str, Any]:
        return {**NOT_RUN, "image": call.inputs.image}

    async def _begun(
        self, call: ToolCall[ContainerInputs], workplace: Workplace, stop: Stop
    ) -> Outcome:
        order = order_of(call)
        credential = await workplace.unlock(call.inputs.auth) if call.inputs.auth else None
        place = self._cluster if in_cluster(call.inputs, credential) else self._local
        streams = Streams(call, workplace, self._longest)
        try:
            return await place.run(call, order, credential, streams, stop)
        finally:
            await streams.discard()


def in_cluster(inputs: ContainerInputs, credential: Mapping[str, Any] | None) -> bool:
    """A task that says nothing runs where its credential is for."""
    if inputs.engine is not None:
        return inputs.engine == "kubernetes"
    kind = str((credential or {}).get("kind", "")).removesuffix("_credential")
    return kind == "kubernetes"
