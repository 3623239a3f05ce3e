"""Containers as jobs of a cluster, on a stand-in that follows the documented API."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.kubernetes import MISSING, TOKEN, Cluster, serving
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.code import ContainerInputs
from noetl.messages.outcome import Outcome
from noetl.playbook.model import Timeout
from noetl.tools.container.cluster import cluster_of
from noetl.tools.container.kubernetes import job_manifest, name_of
from noetl.tools.container.orders import order_of
from noetl.tools.container.tool import ContainerTool


class Ran:
    """A call, and the cluster after it."""

    def __init__(self, outcome: Outcome, cluster: Cluster, place: BenchPlace) -> None:
        self.outcome = outcome
        self.cluster = cluster
        self.place = place

    @property
    def error(self) -> dict[str, Any]:
        assert self.outcome.error is not None, self.outcome
        return self.outcome.error


def run(
    command: Any,
    *,
    prepare: Callable[[Cluster], None] = lambda _: None,
    credential: dict[str, Any] | None = None,
    total: float | None = None,
    resources: dict[str, Any] | None = None,
    **inputs: Any,
) -> Ran:
    async def call() -> Ran:
        async with serving() as cluster:
            prepare(cluster)
            place = BenchPlace(k8s={**cluster.credential, **(credential or {})})
            tool = ContainerTool({}, every=0.01)
            given = {"image": "alpine:3", "command": command, "auth": "k8s", **inputs}
            asked = call_of(
                ContainerInputs(**given), timeout=Timeout(total=total), resources=resources or {}
            )
            try:
                outcome = await tool.call(asked, place)
            finally:
                await tool.close()
            return Ran(outcome, cluster, place)

    return asyncio.run(call())


def test_a_job_runs_to_its_end_and_is_deleted() -> None:
    ran = run('echo "{\\"a\\": $A}"; echo more >&2', env={"A": 1})
    assert ran.outcome.status == "ok"
    assert ran.outcome.result["stdout"].split("\n")[:2] == ['{"a": 1}', "more"]
    assert ran.place.lines == [("stdout", '{"a": 1}'), ("stdout", "more")]
    assert ran.outcome.block == {
        "engine": "kubernetes",
        "image": "alpine:3",
        "image_id": "sha256:1234",
        "exit_code": 0,
        "oom_killed": False,
    }
    assert (ran.cluster.jobs, ran.cluster.secrets) == ({}, {})


def test_values_of_the_environment_are_in_a_secret_and_not_in_the_job() -> None:
    secret, job = run(["true"], env={"WORD": "s3cr3t-word"}).cluster.made
    assert secret["stringData"] == {"WORD": "s3cr3t-word"}
    assert "s3cr3t-word" not in str(job)
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["envFrom"] == [{"secretRef": {"name": secret["metadata"]["name"]}}]


def test_the_job_is_bounded_and_tried_once() -> None:
    resources = {"cpu": 0.5, "memory": "1Gi"}
    (job,) = run(["true"], total=30, resources=resources, workdir="/w").cluster.made
    spec = job["spec"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (0, 31)
    pod = spec["template"]["spec"]
    assert (pod["restartPolicy"], pod["automountServiceAccountToken"]) == ("Never", False)
    (container,) = pod["containers"]
    assert container["resources"] == {"limits": {"cpu": "0.5", "memory": "1073741824"}}
    assert container["workingDir"] == "/w"


ENDS: dict[str, tuple[Any, dict[str, Any], str, bool, str]] = {
    "an exit code": ("echo why; exit 3", {}, "exit", False, "exit code 3"),
    "out of memory": ("exit 137", {}, "limit", False, "more memory"),
    "no such image": (["true"], {"image": MISSING}, "container", False, "ErrImagePull"),
    "standard input": (["true"], {"stdin": "x"}, "input", False, "'stdin' is not supported"),
    "a network": (["true"], {"network": "host"}, "input", False, "the cluster decides"),
    "a wrong token": (["true"], {"credential": {"token": "t"}}, "auth", False, "(401)"),
    "no token": (["true"], {"credential": {"token": ""}}, "auth", False, "address (of the API)"),
    "a ca that is none": (["true"], {"credential": {"ca": "x"}}, "auth", False, "is not PEM"),
    "no address": (
        ["true"],
        {"credential": {"address": "https://u:t0ken-x@host:port"}},
        "input",
        False,
        "'address' is not a server address",
    ),
    "nobody there": (
        ["true"],
        {"credential": {"address": "http://127.0.0.1:1"}},
        "connection",
        True,
        "cannot be reached",
    ),
    "a busy cluster": (
        ["true"],
        {"prepare": lambda cluster: setattr(cluster, "failing", 1)},
        "connection",
        True,
        "currently unable",
    ),
    "a job without a pod": (
        ["true"],
        {"prepare": lambda cluster: setattr(cluster, "stuck", True)},
        "container",
        False,
        "exceeded quota",
    ),
    "a timeout": ("sleep 600", {"total": 0.5}, "timeout", True, "did not end within 0.5 s"),
}


@pytest.mark.parametrize("case", ENDS)
def test_every_end_is_an_outcome_and_leaves_nothing(case: str) -> None:
    command, more, kind, retryable, words = ENDS[case]
    ran = run(command, **more)
    assert (ran.error["kind"], ran.error["retryable"]) == (kind, retryable), ran.error
    assert words in ran.error["message"]
    assert TOKEN not in str(ran.outcome)
    assert "t0ken-x" not in str(ran.outcome)
    assert (ran.cluster.jobs, ran.cluster.secrets) == ({}, {})


def test_a_second_delivery_takes_up_the_job_of_the_first() -> None:
    async def calls() -> tuple[Outcome, list[str]]:
        async with serving() as cluster:
            asked = call_of(ContainerInputs(image="a", command=["echo", "once"], auth="k8s"))
            lost = job_manifest(name_of(asked), order_of(asked), None)
            async with cluster_of(cluster.credential) as api:  # by a worker that was killed then
                await api.create("apis/batch/v1", "jobs", lost)
            tool = ContainerTool({}, every=0.01)
            outcome = await tool.call(asked, BenchPlace(k8s=cluster.credential))
            await tool.close()
            return outcome, [one["kind"] for one in cluster.made]

    outcome, made = asyncio.run(calls())
    assert made == ["Job"]
    assert outcome.result["stdout"] == "once\n"


def test_cancelling_deletes_the_job() -> None:
    async def call() -> tuple[dict[str, Any], list[str]]:
        async with serving() as cluster:
            tool = ContainerTool({}, every=0.01)
            inputs = ContainerInputs(image="a", command=["sleep", "600"], auth="k8s")
            place = BenchPlace(k8s=cluster.credential)
            running = asyncio.create_task(tool.call(call_of(inputs), place))
            while not any(asked.endswith("/log") for asked in cluster.asked):
                await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await tool.close()
            return cluster.jobs, cluster.asked

    jobs, asked = asyncio.run(call())
    assert jobs == {}
    assert asked[-1].startswith("DELETE")


def test_a_task_may_name_the_cluster_itself() -> None:
    ran = run(["echo", "there"], engine="kubernetes", credential={"kind": "generic"})
    assert ran.outcome.result["stdout"] == "there\n"
