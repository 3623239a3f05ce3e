"""SRV-2: a request that is refused is recorded, and says why wherever executions are shown."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conformance.test_srv import at, on_api, register
from tests.support.api import Api
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster
from tests.support.steps import noop, refuse, step

from noetl.adapters.memory.storage import MemoryStorage
from noetl.server.verify import verify

GUARDED = at("demo/guarded", step("start", noop("x"), admit=[refuse("workload.closed")]))


async def refused(api: Api, **asked: Any) -> tuple[int, dict[str, Any], list[dict[str, Any]]]:
    """Status and error of the answer, and the events that it is recorded with."""
    status, told = await api.ask("POST", "/api/executions", json=asked)
    error = told["error"]
    events = await api.get(f"/api/executions/{error['execution_id']}/events")
    return status, error, events["events"]


@pytest.mark.rule("SRV-2")
@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"path": "demo/nope", "payload": {"a": 1}}, ("demo/nope", None)),
        ({"path": "demo/nope", "version": 7}, ("demo/nope", "7")),
        ({"playbook_id": "demo/nope:3"}, ("demo/nope:3", None)),
    ],
)
def test_a_request_for_an_unknown_playbook_is_recorded(
    tmp_path: Path, asked: dict[str, Any], shown: tuple[str, str | None]
) -> None:
    async def test(_: Cluster, api: Api) -> None:
        status, error, events = await refused(api, **asked)
        assert (status, error["code"]) == (404, "playbook_not_found")
        assert [event["name"] for event in events] == [
            "playbook.execution.requested",
            "playbook.request.evaluated",
            "workflow.finished",
            "playbook.processed",
        ]
        assert events[0]["data"].get("payload", {}) == asked.get("payload", {})
        told = events[1]
        assert (told["status"], told["data"]["error"]["kind"]) == ("error", "not_found")
        assert told["data"]["error"]["retryable"] is False
        where = f"/api/executions/{error['execution_id']}"
        (listed,) = (await api.get("/api/executions", status="failed"))["executions"]
        standing = await api.get(where)
        for one in (listed, standing):
            assert (one["path"], one["version"], one["status"]) == (*shown, "failed")
        assert error["message"] in listed["error"]
        assert error["message"] in standing["error"]["message"]
        assert (
            error["message"] in msgspec.json.encode(await api.get(f"{where}/explanation")).decode()
        )
        assert (await api.get(f"{where}/verify"))["ok"]
        await register(api, at("demo/nope", step("start", noop("x"))))
        assert (await api.get(f"{where}/verify"))["ok"], "whatever is registered later"

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-2")
def test_a_playbook_that_is_not_valid_any_more_is_refused_on_record(tmp_path: Path) -> None:
    async def test(cluster: Cluster, api: Api) -> None:
        entry = (await register(api, GUARDED))["entry"]
        storage = cluster.servers[0].storage
        assert isinstance(storage, MemoryStorage)
        broken = GUARDED.replace("noop", "gone")
        storage.tables.playbooks[entry["digest"]] = (broken, None)
        status, error, events = await refused(api, path="demo/guarded")
        assert (status, error["code"]) == (422, "playbook_rejected")
        assert events[1]["data"]["error"]["kind"] == "input"
        found = await verify(storage.log, storage.playbooks, cluster.results, error["execution_id"])
        assert found.ok, found.message

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-2")
def test_one_of_many_requests_is_refused_on_record(tmp_path: Path) -> None:
    async def test(cluster: Cluster, api: Api) -> None:
        cluster.worker(CannedTools())
        await register(api, GUARDED)
        many = {"executions": [{"path": "demo/guarded"}, {"path": "demo/nope"}]}
        begun, refusal = (await api.post("/api/executions/batch", many))["executions"]
        assert begun["execution"]["path"] == "demo/guarded"
        standing = await api.get(f"/api/executions/{refusal['error']['execution_id']}")
        assert (standing["path"], standing["status"]) == ("demo/nope", "failed")

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-2", "ADM-3")
@pytest.mark.parametrize("closed", [True, False])
def test_a_refused_entry_token_says_so_in_the_status(tmp_path: Path, closed: bool) -> None:
    async def test(cluster: Cluster, api: Api) -> None:
        cluster.worker(CannedTools())
        await register(api, GUARDED)
        asked = {"path": "demo/guarded", "payload": {"closed": closed}}
        begun = await api.post("/api/executions", asked)
        where = f"/api/executions/{begun['execution_id']}"
        await api.get(f"{where}/result", wait=30)
        standing = await api.get(where)
        assert standing["status"] == "completed", "a dropped token fails nothing (NEXT-5)"
        says = "no step ran: the admission of 'start' (rule 1) refused the entry token"
        assert standing.get("refused") == (says if closed else None)

    on_api(test, tmp_path)
