"""SRV: a playbook leaves the catalog, unless something needs it."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.support.api import Api, api_of
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered
from tests.support.scenario import Gate
from tests.support.steps import call, noop, playbook, step

ENTRY = "/api/catalog/entries/demo/load"
TRIGGER = """
apiVersion: noetl.io/v2
kind: Trigger
metadata: {{name: nightly, path: demo/nightly}}
spec:
  playbook: demo/load
  {version}
  on: {{schedule: {{cron: "0 3 * * *"}}}}
"""


def text(label: str) -> str:
    about = {"name": "load", "path": "demo/load", "version": label}
    return playbook(step("start", call("ask")), metadata=about)


def served(test: Callable[[Cluster, Api, CannedTools], Awaitable[None]], home: Path) -> None:
    async def run(cluster: Cluster) -> None:
        async with api_of(await cluster.server()) as api:
            tools = CannedTools()
            cluster.worker(tools)
            for label in ("one", "two"):
                await api.post("/api/catalog", {"text": text(label)})
            await test(cluster, api, tools)

    clustered(run, home)


async def refused(api: Api, **query: object) -> str:
    status, told = await api.ask("DELETE", ENTRY, params=query)
    assert (status, told["error"]["code"]) == (409, "in_use"), told
    return str(told["error"]["message"])


@pytest.mark.rule("SRV-1")
def test_a_removed_version_is_not_found_and_the_one_before_is_the_newest(tmp_path: Path) -> None:
    async def test(cluster: Cluster, api: Api, _: CannedTools) -> None:
        begun = await api.post("/api/executions", {"path": "demo/load", "version": 2})
        await cluster.end_of(str(begun["execution_id"]))
        status, _told = await api.ask("DELETE", ENTRY, params={"version": 2})
        assert status == 204
        status, _told = await api.ask("DELETE", ENTRY, params={"version": 2})
        assert status == 404
        status, _told = await api.ask(
            "POST", "/api/executions", json={"path": "demo/load", "version": 2}
        )
        assert status == 404
        assert (await api.get(ENTRY))["version"] == 1
        assert (await api.post("/api/catalog", {"text": text("two")}))["entry"]["version"] == 3
        told = await api.get(f"/api/executions/{begun['execution_id']}")
        assert told["status"] == "completed"
        assert (await api.ask("DELETE", ENTRY))[0] == 204
        assert (await api.get("/api/catalog"))["entries"] == []

    served(test, tmp_path)


@pytest.mark.rule("SRV-1")
def test_what_an_execution_runs_stays_until_it_has_ended(tmp_path: Path) -> None:
    async def test(cluster: Cluster, api: Api, tools: CannedTools) -> None:
        gate = Gate()
        tools.answers["ask"] = [gate]
        begun = await api.post("/api/executions", {"path": "demo/load"})
        [held] = await gate.held(1)
        assert begun["execution_id"] in await refused(api)
        assert begun["execution_id"] in await refused(api, version="two")
        assert (await api.ask("DELETE", ENTRY, params={"version": "one"}))[0] == 204
        await gate.let_go(held)
        await cluster.end_of(str(begun["execution_id"]))
        assert (await api.ask("DELETE", ENTRY))[0] == 204

    served(test, tmp_path)


@pytest.mark.rule("SRV-1", "START-1")
def test_what_a_trigger_starts_stays(tmp_path: Path) -> None:
    async def test(_: Cluster, api: Api, __: CannedTools) -> None:
        await api.post("/api/catalog", {"text": TRIGGER.format(version="version: 1")})
        assert "trigger 'demo/nightly' starts it" in await refused(api, version=1)
        assert (await api.ask("DELETE", ENTRY, params={"version": 2}))[0] == 204
        await api.post("/api/catalog", {"text": text("two")})
        await api.post("/api/catalog", {"text": TRIGGER.format(version="")})
        assert (await api.ask("DELETE", ENTRY, params={"version": 1}))[0] == 204
        assert "noetl trigger remove demo/nightly" in await refused(api)
        own = "/api/catalog/entries/demo/nightly"
        status, told = await api.ask("DELETE", own)
        assert (status, "it is a trigger" in told["error"]["message"]) == (409, True)
        assert (await api.ask("DELETE", "/api/triggers/entries/demo/nightly"))[0] == 204
        assert (await api.ask("DELETE", ENTRY))[0] == 204
        assert (await api.ask("DELETE", own))[0] == 204

    served(test, tmp_path)


@pytest.mark.rule("SRV-1")
def test_a_playbook_of_other_paths_is_no_reason(tmp_path: Path) -> None:
    async def test(_: Cluster, api: Api, __: CannedTools) -> None:
        other = playbook(step("start", noop("n")), metadata={"name": "x", "path": "demo/other"})
        await api.post("/api/catalog", {"text": other})
        assert (await api.ask("DELETE", ENTRY))[0] == 204
        assert (await api.ask("DELETE", "/api/catalog/entries/demo/none"))[0] == 404
        entries = (await api.get("/api/catalog"))["entries"]
        assert [entry["path"] for entry in entries] == ["demo/other"]

    served(test, tmp_path)
