"""One container as a job of a Kubernetes cluster, by its API: created, followed, deleted."""

import asyncio
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from noetl.messages.outcome import Outcome
from noetl.tools.container.cluster import Cluster, cluster_of
from noetl.tools.container.orders import ContainerSpec
from noetl.tools.container.outcomes import Ran, outcome_of, too_slow, unstarted
from noetl.tools.process.capture import STDOUT, Streams
from noetl.tools.refusal import Refusal
from noetl.tools.tool import ToolCall
from noetl.tools.unbroken import Stop, ends_in_time

EVERY = 1.0
"""Seconds between two questions about a pod that is not running yet."""
KEPT = 600
"""Seconds after which the cluster itself removes a job that nobody deleted."""
NO_IMAGE = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
NO_START = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
BATCH, PLAIN = "apis/batch/v1", "api/v1"


class ClusterContainers:
    """Streams of a job come as one: Kubernetes does not tell stderr from stdout."""

    def __init__(self, *, every: float = EVERY) -> None:
        self._every = every

    async def run(
        self,
        call: ToolCall[Any],
        order: ContainerSpec,
        credential: Mapping[str, Any] | None,
        streams: Streams,
        stop: Stop,
    ) -> Outcome:
        check(order)
        name, total = name_of(call), call.timeout.total
        async with cluster_of(credential or {}) as cluster:
            work = asyncio.create_task(self._follow(cluster, order, name, total, streams))
            try:
                if await ends_in_time(work, stop, total):
                    return work.result()
            finally:
                work.cancel()
                await asyncio.wait({work})
                await clean(cluster, name, order)
            ran = Ran(engine="kubernetes", image=order.image)
            return too_slow(total or 0.0, ran, await streams.finish())

    async def _follow(
        self,
        cluster: Cluster,
        order: ContainerSpec,
        name: str,
        total: float | None,
        streams: Streams,
    ) -> Outcome:
        if order.environment:
            # Values of the environment are no part of the job, which many may read.
            values = manifest("v1", "Secret", name, type="Opaque", stringData=order.environment)
            await cluster.create(PLAIN, "secrets", values)
        await cluster.create(BATCH, "jobs", job_manifest(name, order, total))
        ran = Ran(engine="kubernetes", image=order.image)
        pod, said = await self._begun(cluster, name)
        if pod is None:
            return unstarted(ran, said)
        async for piece in cluster.log(pod):
            streams.take(STDOUT, piece)
        ended = await self._ended(cluster, name)
        printed = await streams.finish()
        return outcome_of(ran_in(ended, ran), printed, order.memory)

    async def _begun(self, cluster: Cluster, name: str) -> tuple[str | None, str]:
        """The pod whose container runs or has run; or why there will be none."""
        while True:
            pod = await cluster.pod(name)
            status = container_in(pod)
            if pod and ("running" in status or "terminated" in status):
                return str(pod["metadata"]["name"]), ""
            waiting = status.get("waiting", {})
            reason = str(waiting.get("reason", ""))
            message = f"{reason}: {waiting.get('message') or 'without a message'}"
            if reason in NO_IMAGE:
                return None, f"no such image: {message}"
            if reason in NO_START:
                return None, message
            for condition in (await cluster.job(name)).get("status", {}).get("conditions") or []:
                if condition.get("type") == "Failed" and condition.get("status") == "True":
                    return None, str(condition.get("message") or condition.get("reason"))
            await asyncio.sleep(self._every)

    async def _ended(self, cluster: Cluster, name: str) -> dict[str, Any]:
        """The log may end a moment before the status says so."""
        while True:
            pod = await cluster.pod(name)
            if pod is None:
                says = "the pod was removed by others before it had ended"
                raise Refusal("container", says, retryable=True)
            if "terminated" in container_in(pod):
                return pod
            await asyncio.sleep(self._every)


def check(order: ContainerSpec) -> None:
    """What a job of a cluster cannot have."""
    for given, name in ((order.stdin is not None, "stdin"), (bool(order.binds), "mounts")):
        if given:
            says = f"'{name}' is not supported on Kubernetes; pass values in 'env' or 'args'"
            raise Refusal("input", says)
    if order.network != "none":
        says = f"network is '{order.network}'; on Kubernetes the cluster decides, leave it out"
        raise Refusal("input", says)


def name_of(call: ToolCall[Any]) -> str:
    """The same on redelivery, so that a worker takes up the job of one that was lost."""
    key = f"{call.idempotency_key}-{call.attempt}"
    return f"noetl-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def manifest(version: str, kind: str, name: str, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"app.kubernetes.io/managed-by": "noetl"}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def job_manifest(name: str, order: ContainerSpec, total: float | None) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": "main",
        "image": order.image,
        "securityContext": {"allowPrivilegeEscalation": False},
        "resources": {"limits": limits_in(order)},
    }
    if order.command:
        container["command"] = order.command[:1]
        container["args"] = order.command[1:]
    if order.environment:
        container["envFrom"] = [{"secretRef": {"name": name}}]
    if order.workdir is not None:
        container["workingDir"] = order.workdir
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [container],
    }
    spec: dict[str, Any] = {
        "backoffLimit": 0,  # policies of the playbook retry, nobody else
        "ttlSecondsAfterFinished": KEPT,
        "template": {"spec": pod},
    }
    if total is not None:
        spec["activeDeadlineSeconds"] = max(1, round(total) + 1)
    return manifest("batch/v1", "Job", name, spec=spec)


def limits_in(order: ContainerSpec) -> dict[str, str]:
    limits = {} if order.cpu is None else {"cpu": f"{order.cpu:g}"}
    return limits if order.memory is None else {**limits, "memory": str(order.memory)}


def container_in(pod: dict[str, Any] | None) -> dict[str, Any]:
    """The state of the one container: `waiting`, `running` or `terminated`, with its details."""
    statuses = (pod or {}).get("status", {}).get("containerStatuses") or [{}]
    state: dict[str, Any] = statuses[0].get("state") or {}
    return state


def ran_in(pod: dict[str, Any], ran: Ran) -> Ran:
    ended = container_in(pod)["terminated"]
    statuses = pod["status"]["containerStatuses"]
    return msgspec.structs.replace(
        ran,
        image_id=statuses[0].get("imageID") or None,
        exit_code=ended.get("exitCode"),
        oom_killed=ended.get("reason") == "OOMKilled",
    )


async def clean(cluster: Cluster, name: str, order: ContainerSpec) -> None:
    """A job that cannot be deleted now is removed by the cluster itself later."""
    with suppress(Refusal):
        await cluster.delete(BATCH, "jobs", name)
    if order.environment:
        with suppress(Refusal):
            await cluster.delete(PLAIN, "secrets", name)
