"""SRV-1 and SRV-2: what a server answers over HTTP, on a socket, with a real plane behind it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.api import Api, api_of
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered
from tests.support.scenario import Gate, ok
from tests.support.steps import arc, call, noop, playbook, sets, step

from noetl.adapters.http.link import HttpLink
from noetl.api.tokens import new_token
from noetl.messages.outcome import failed
from noetl.ports.roster import WorkerRow

YAML = {"content-type": "text/yaml"}


def at(path: str, *steps: Any, **roots: Any) -> str:
    """A playbook of this path."""
    return playbook(*steps, metadata={"name": "demo", "path": path}, **roots)


QUICK = at("demo/quick", step("start", noop("first")))
CHAIN = at(
    "demo/chain",
    step("first", call("fetch"), call("store"), arcs=[arc("second")]),
    step("second", call("tell")),
)

Asked = Callable[[Cluster, Api], Awaitable[None]]


def on_api(test: Asked, home: Path) -> None:
    """Run a test on a cluster of one server that is reached over HTTP."""

    async def run(cluster: Cluster) -> None:
        async with api_of(await cluster.server()) as api:
            await test(cluster, api)

    clustered(run, home)


async def register(api: Api, text: str) -> Any:
    status, told = await api.ask("POST", "/api/catalog", data=text, headers=YAML)
    assert status in (200, 201), told
    return told


async def execute(api: Api, path: str, **more: Any) -> str:
    told = await api.post("/api/executions", {"path": path, **more})
    return str(told["execution_id"])


# ── catalog ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("SRV-1")
@pytest.mark.parametrize("path", ["../../tokens/x", "a/../../b", "./a", "a/.", ".."])
def test_no_path_of_the_catalog_leads_to_another_address(tmp_path: Path, path: str) -> None:
    """Browsers and proxies resolve it: who removes it would ask for something else."""

    async def test(_: Cluster, api: Api) -> None:
        text = at(path, step("start", noop("first")))
        status, told = await api.ask("POST", "/api/catalog", data=text, headers=YAML)
        assert (status, "leaves its folder" in told["error"]["message"]) == (422, True)

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-1")
def test_the_catalog_keeps_every_version(tmp_path: Path) -> None:
    async def test(_: Cluster, api: Api) -> None:
        first = await register(api, QUICK)
        again = await register(api, QUICK)
        second = await api.post("/api/catalog", {"text": QUICK.replace("first", "other")})
        entry = first["entry"]
        assert (first["fresh"], entry["version"], entry["playbook_id"]) == (
            True,
            1,
            "demo/quick:1",
        )
        assert (again["fresh"], again["entry"]) == (False, entry)
        assert (second["fresh"], second["entry"]["version"]) == (True, 2)
        versions = await api.pages("/api/catalog/versions/demo/quick", "entries", limit=1)
        assert [one["version"] for one in versions] == [2, 1]
        newest = await api.get("/api/catalog/entries/demo/quick")
        oldest = await api.get("/api/catalog/entries/demo/quick", version=1)
        assert (newest["version"], oldest["version"], oldest["text"]) == (2, 1, QUICK)
        assert oldest["original"] is None

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-1")
def test_the_catalog_is_listed_by_path_in_pages(tmp_path: Path) -> None:
    async def test(_: Cluster, api: Api) -> None:
        paths = [f"demo/{name}" for name in ("d", "b", "a", "c", "e")]
        for path in paths:
            await register(api, QUICK.replace("demo/quick", path))
        found = await api.pages("/api/catalog", "entries", limit=2)
        assert [one["path"] for one in found] == sorted(paths)

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-1")
def test_a_playbook_with_errors_is_refused_with_all_of_them(tmp_path: Path) -> None:
    async def test(_: Cluster, api: Api) -> None:
        wrong = CHAIN.replace("second", "secnd", 1)
        for path, body in (("/api/catalog", {"text": wrong}), ("/api/catalog", {"text": "a: ["})):
            status, told = await api.ask("POST", path, json=body)
            error = told["error"]
            assert (status, error["code"]) == (422, "playbook_rejected")
            assert all(one["message"] and one["line"] for one in error["findings"])
        assert (await api.get("/api/catalog"))["entries"] == []
        checked = await api.post("/api/validate", {"text": wrong})
        assert checked["valid"] is False
        assert checked["findings"]
        assert (await api.post("/api/validate", {"text": CHAIN}))["valid"] is True

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-1")
def test_an_older_dialect_is_registered_as_what_it_means(tmp_path: Path) -> None:
    older = (Path(__file__).parent / "playbooks" / "older" / "eval_dialect.yaml").read_text()

    async def test(_: Cluster, api: Api) -> None:
        status, told = await api.ask("POST", "/api/catalog", json={"text": older})
        assert (status, told["error"]["code"]) == (422, "playbook_rejected")
        told = await api.post("/api/catalog", {"text": older, "migrate": True})
        assert told["entry"]["migrated"] is True
        found = await api.get(f"/api/catalog/entries/{told['entry']['path']}")
        assert found["original"] == older
        assert found["text"] != older

    on_api(test, tmp_path)


# ── executing ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("SRV-1")
def test_an_execution_is_started_by_id_or_by_path_and_version(tmp_path: Path) -> None:
    async def test(_: Cluster, api: Api) -> None:
        await register(api, QUICK)
        await register(api, QUICK.replace("first", "other"))
        for asked, version in (
            ({"path": "demo/quick"}, "2"),
            ({"path": "demo/quick", "version": 1}, "1"),
            ({"playbook_id": "demo/quick:1"}, "1"),
        ):
            told = await api.post("/api/executions", asked)
            assert (told["path"], told["version"]) == ("demo/quick", version)
        for asked in (
            {"path": "demo/none"},
            {"path": "demo/quick", "version": 3},
            {"playbook_id": "x"},
        ):
            status, told = await api.ask("POST", "/api/executions", json=asked)
            assert (status, told["error"]["code"]) == (404, "playbook_not_found")

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-1")
def test_one_key_starts_one_execution_however_often_it_is_asked(tmp_path: Path) -> None:
    async def test(_: Cluster, api: Api) -> None:
        await register(api, QUICK)
        key = {"Idempotency-Key": "once"}
        asked = {"path": "demo/quick", "payload": {"n": 1}}
        told = await asyncio.gather(
            *(api.post("/api/executions", asked, headers=key) for _ in range(20))
        )
        assert len({one["execution_id"] for one in told}) == 1
        assert len((await api.get("/api/executions"))["executions"]) == 1
        status, refused = await api.ask(
            "POST", "/api/executions", json={**asked, "payload": {"n": 2}}, headers=key
        )
        assert (status, refused["error"]["code"]) == (409, "key_reused")

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-2")
def test_a_request_is_taken_in_its_order_each_part_an_event(tmp_path: Path) -> None:
    workload = {"a": 1, "b": {"c": 2}}
    text = at("demo/quick", step("start", noop("first")), workload=workload)

    async def test(_: Cluster, api: Api) -> None:
        await register(api, text)
        execution_id = await execute(api, "demo/quick", payload={"b": {"d": "{{ 7 * 7 }}"}})
        events = (await api.get(f"/api/executions/{execution_id}/events"))["events"]
        assert [event["name"] for event in events[:4]] == [
            "playbook.execution.requested",
            "playbook.request.evaluated",
            "workflow.started",
            "token.created",
        ]
        assert events[1]["data"]["workload"] == {"a": 1, "b": {"c": 2, "d": "{{ 7 * 7 }}"}}

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-2", "SCOPE-4")
def test_a_request_may_bring_a_ctx(tmp_path: Path) -> None:
    text = at("demo/ctx", step("start", sets("add", n="{{ ctx.n + workload.n }}")))

    async def test(_: Cluster, api: Api) -> None:
        await register(api, text)
        asked = {"path": "demo/ctx", "payload": {"n": 1}, "ctx": {"n": 2, "m": 5}}
        key = {"Idempotency-Key": "once"}
        begun = await api.post("/api/executions", asked, headers=key)
        ended = await api.get(f"/api/executions/{begun['execution_id']}/result?wait=20")
        assert (ended["status"], ended["ctx"]) == ("completed", {"n": 3, "m": 5})
        status, refused = await api.ask(
            "POST", "/api/executions", json={**asked, "ctx": {}}, headers=key
        )
        assert (status, refused["error"]["code"]) == (409, "key_reused")

    on_api(test, tmp_path)


# ── executions ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("SRV-1")
def test_executions_are_listed_and_filtered_newest_first(tmp_path: Path) -> None:
    async def test(_: Cluster, api: Api) -> None:
        await register(api, QUICK)
        await register(api, CHAIN)
        quick = [await execute(api, "demo/quick") for _ in range(5)]
        chain = await execute(api, "demo/chain")
        where = "/api/executions"

        async def found(**query: Any) -> list[str]:
            rows = await api.pages(where, "executions", **query)
            return [row["execution_id"] for row in rows]

        assert await found(limit=2) == [chain, *reversed(quick)]
        assert await found(status="completed", limit=2) == [*reversed(quick)]
        assert await found(status="running") == [chain]
        assert await found(path="demo/chain") == [chain]
        assert await found(path="demo/q*", limit=2) == [*reversed(quick)]
        assert await found(path="other/*") == []
        assert await found(parent=chain) == []
        started = (await api.get(f"{where}/{chain}"))["started_at"]
        assert chain in await found(since=started)
        assert chain not in await found(until=started)

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-1")
def test_an_execution_says_how_it_stands_and_what_it_waits_for(tmp_path: Path) -> None:
    async def test(cluster: Cluster, api: Api) -> None:
        await register(api, CHAIN)
        execution_id = await execute(api, "demo/chain")
        one = f"/api/executions/{execution_id}"
        standing = await api.get(one)
        assert (standing["status"], standing["interrupted"]) == ("running", False)
        [wait] = standing["waits"]
        assert (wait["step"], wait["kind"], wait["pool"]) == ("first", "worker", "default")
        assert wait["since"] >= standing["started_at"]
        assert wait["words"] == (
            f"waits for a worker of pool 'default' since {wait['since']}; "
            "no worker of that pool is known; start one: noetl worker start --pool default"
        )
        state = await api.get(f"{one}/state")
        assert [run["step"] for run in state["runs"]] == ["first"]
        tools = CannedTools()
        tools.answers["store"] = [failed("broken", "it broke")]
        cluster.worker(tools)
        result = await api.get(f"{one}/result", wait=30)
        assert (result["status"], result["error"]["kind"]) == ("failed", "broken")
        why = await api.get(f"{one}/explanation")
        assert (why["failures"], why["causes"][0]["step"]) == (1, "first")
        assert (await api.get(f"{one}/verify"))["ok"] is True

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-1")
def test_executions_are_paused_resumed_and_cancelled(tmp_path: Path) -> None:
    async def test(cluster: Cluster, api: Api) -> None:
        tools, gate = CannedTools(), Gate(ok("there"))
        tools.answers["store"] = [gate]
        cluster.worker(tools)
        await register(api, CHAIN)
        execution_id = await execute(api, "demo/chain")
        one = f"/api/executions/{execution_id}"
        (key,) = await gate.held(1)
        await api.post(f"{one}/pause", {"reason": "look"})
        assert (await api.get(one))["status"] == "paused"
        await gate.let_go(key)
        assert (await api.get(f"{one}/result"))["status"] == "paused"
        await api.post(f"{one}/resume")
        assert (await api.get(f"{one}/result", wait=30))["status"] == "completed"
        status, told = await api.ask("POST", f"{one}/cancel")
        assert (status, told["error"]["code"]) == (409, "finished")

        tools.answers["fetch"] = [Gate()]
        second = await execute(api, "demo/chain")
        await api.post(f"/api/executions/{second}/cancel", {"reason": "enough"})
        ended = await api.get(f"/api/executions/{second}/result", wait=30)
        assert ended["status"] == "cancelled"
        for order in ("cancel", "pause", "resume"):
            status, told = await api.ask("POST", f"/api/executions/nobody/{order}")
            assert (status, told["error"]["code"]) == (404, "execution_not_found")

    on_api(test, tmp_path)


# ── credentials, tokens, runtime ─────────────────────────────────────────────────────────────


@pytest.mark.rule("SRV-1", "KEY-2")
def test_credentials_go_in_and_never_out(tmp_path: Path) -> None:
    secret = "correct horse battery"

    async def test(cluster: Cluster, api: Api) -> None:
        body = {"kind": "basic", "fields": {"user": "me", "password": secret}}
        status, told = await api.ask("PUT", "/api/credentials/team/db", json=body)
        assert (status, told["name"], told["kind"]) == (200, "team/db", "basic")
        listed = await api.pages("/api/credentials", "credentials", limit=1)
        assert [one["name"] for one in listed] == ["team/db"]
        assert secret not in str(told) + str(listed)
        rows = await cluster.root.credentials.all()
        (sealed,) = [row for row in rows if row.kind == "basic"]
        assert secret.encode() not in sealed.sealed
        # A value that came in through another door is masked on its way out, too.
        await register(api, at("demo/leak", step("start", sets("keep", said=secret))))
        leak = await execute(api, "demo/leak")
        for below in ("", "/state", "/result", "/events", "/stream"):
            _, shown = await api.ask("GET", f"/api/executions/{leak}{below}")
            assert secret not in str(shown)
        assert (await api.ask("DELETE", "/api/credentials/team/db"))[0] == 204
        assert await api.pages("/api/credentials", "credentials") == []

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-1")
def test_tokens_are_made_listed_and_revoked(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        plane = await cluster.server()
        text, row = new_token("root", "admin", now_ms=1)
        await plane.storage.tokens.add(row)
        async with api_of(plane, auth=True, token=text) as api:
            made = await api.post("/api/tokens", {"name": "ci", "role": "viewer", "expires_in": 60})
            listed = await api.pages("/api/tokens", "tokens", limit=1)
            assert [one["name"] for one in listed] == ["root", "ci"]
            assert made["token"] not in str(listed)
            mine = {"Authorization": f"Bearer {made['token']}"}
            assert (await api.ask("GET", "/api/catalog", headers=mine))[0] == 200
            assert (await api.ask("POST", "/api/executions", json={}, headers=mine))[0] == 403
            assert (await api.ask("DELETE", f"/api/tokens/{made['token_id']}"))[0] == 204
            assert (await api.ask("GET", "/api/catalog", headers=mine))[0] == 401

    clustered(test, tmp_path)


@pytest.mark.rule("SRV-1")
def test_errors_and_failures_that_failed_no_execution_are_counted(tmp_path: Path) -> None:
    """The summary of an execution has them, `/metrics` their sum."""

    async def test(cluster: Cluster, api: Api) -> None:
        tools = CannedTools()
        cluster.worker(tools)
        went_on = call("get", {"else": {"then": {"do": "continue"}}})
        taken = arc("alarm", "event.name == 'step.failed'")
        await register(api, at("demo/passes", step("start", went_on)))
        await register(
            api, at("demo/handled", step("start", call("get"), arcs=[taken]), step("alarm"))
        )
        counts = []
        for path in ("demo/passes", "demo/handled", "demo/handled"):
            tools.answers["get"] = [failed("http", "closed")]
            one = await execute(api, path)
            told = await api.get(f"/api/executions/{one}/result", wait=30)
            assert told["status"] == "completed"
            counts.append((told["errors_passed"], told["failures_handled"]))
        assert counts == [(1, 0), (0, 1), (0, 1)]
        metrics = await api.get("/metrics")
        assert "\nnoetl_errors_passed 1.0\n" in metrics
        assert "\nnoetl_failures_handled 2.0\n" in metrics

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-1")
def test_runtime_health_and_metrics(tmp_path: Path) -> None:
    async def test(cluster: Cluster, api: Api) -> None:
        now = 9_999_999_999_999
        usual: dict[str, Any] = {
            "version": "1", "host": "h", "pid": 1, "started_at": now, "seen_at": now,
        }  # fmt: skip
        for name, pool in (("w1", "a"), ("w2", "a"), ("w3", "b")):
            row = WorkerRow(name=name, pool=pool, slots=4, busy=1, **usual)
            await cluster.root.roster.seen(row)
        told = await api.get("/api/runtime")
        assert told["server"] == cluster.servers[0].name
        assert [(one["name"], one["workers"], one["slots"]) for one in told["pools"]] == [
            ("a", 2, 8),
            ("b", 1, 4),
        ]
        await register(api, QUICK)
        await execute(api, "demo/quick")
        assert 'noetl_executions{status="completed"} 1.0' in await api.get("/metrics")
        assert await api.get("/healthz") == {"status": "ok"}
        assert await api.get("/readyz") == {"status": "ok"}
        assert (await api.get("/openapi.json"))["openapi"].startswith("3.1")
        assert (await api.get("/api/schema"))["title"] == "NoETL playbook"

    on_api(test, tmp_path)


# ── workers ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("SRV-1", "WRK-1")
def test_a_worker_works_over_http_with_its_own_token(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        plane = await cluster.server()
        text, row = new_token("root", "admin", now_ms=1)
        theirs, worker_row = new_token("pool", "worker", now_ms=1)
        for made in (row, worker_row):
            await plane.storage.tokens.add(made)
        async with api_of(plane, auth=True, token=text) as api:
            tools = CannedTools()
            worker = cluster.worker(tools, link=HttpLink([api.url], theirs), token=theirs)
            await register(api, CHAIN)
            execution_id = await execute(api, "demo/chain")
            one = f"/api/executions/{execution_id}"
            assert (await api.get(f"{one}/result", wait=30))["status"] == "completed"
            events = (await api.get(f"{one}/events", name="token.claimed"))["events"]
            assert {event["data"]["worker"] for event in events} == {worker.name}
            assert [called.label for called in tools.calls] == ["fetch", "store", "tell"]
            await worker.drain(0.0)

    clustered(test, tmp_path)
