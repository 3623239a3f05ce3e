"""RST at a server: the route, its refusals, one key, workers elsewhere, and what parted."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.api import Api, api_of
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered, turns
from tests.support.scenario import Gate, error, ok
from tests.support.steps import arc, call, loop, playbook, sets, step
from tests.support.waiting import waits

from noetl.messages.requests import SendSignal

HEAD = {"name": "load", "path": "demo/load"}
TEXT = playbook(
    step("start", call("ask"), arcs=[arc("load")]),
    step(
        "load",
        call("work", body="{{ iter.n }} {{ workload.word }}"),
        loop=loop([1, 2, 3], mode="parallel", flight=3),
        arcs=[arc("end")],
    ),
    step("end", call("last")),
    metadata=HEAD,
    workload={"word": "old"},
)


def breaks_at(text: str) -> Any:
    left = {text}

    def answer(asked: Any) -> Any:
        body = asked.inputs.body
        if body in left:
            left.discard(body)
            return error("x")
        return ok(body)

    return answer


def served(test: Callable[[Cluster, Api, CannedTools], Awaitable[None]], home: Path) -> None:
    async def run(cluster: Cluster) -> None:
        async with api_of(await cluster.server()) as api:
            tools = CannedTools()
            tools.answers["work"] = [breaks_at("2 old")]
            cluster.worker(tools)
            await api.ask("POST", "/api/catalog", json={"text": TEXT})
            await test(cluster, api, tools)

    clustered(run, home)


async def failed_one(cluster: Cluster, api: Api) -> str:
    told = await api.post("/api/executions", {"path": "demo/load"})
    ended = await cluster.end_of(str(told["execution_id"]))
    assert ended.status == "failed"
    return ended.execution_id


@pytest.mark.rule("RST-1")
def test_a_restart_says_before_what_it_would_run_again(tmp_path: Path) -> None:
    async def test(cluster: Cluster, api: Api, _: CannedTools) -> None:
        old = await failed_one(cluster, api)
        at = f"/api/executions/{old}/restart/plan"
        usual = await api.post(at)
        assert usual == {
            "chosen": ["load:1"],
            "steps": ["load"],
            "iterations": 1,
            "tasks": 1,
            "kept": 3,
        }
        whole = await api.post(at, {"chosen": ["start"]})
        assert (whole["steps"], whole["tasks"], whole["kept"]) == (["start", "load"], 4, 0)
        status, told = await api.ask("POST", at, json={"chosen": ["laod"]})
        assert (status, told["error"]["code"]) == (409, "restart_refused")
        listed = await api.get("/api/executions")
        assert len(listed["executions"]) == 1, "nothing has begun"

    served(test, tmp_path)


@pytest.mark.rule("RST-1", "RST-4", "SRV-1")
def test_a_server_restarts_what_failed_at_its_workers(tmp_path: Path) -> None:
    async def test(cluster: Cluster, api: Api, tools: CannedTools) -> None:
        old = await failed_one(cluster, api)
        tools.calls.clear()
        told = await api.post(f"/api/executions/{old}/restart", {"payload": {"word": "new"}})
        assert told["origin_execution_id"] == old
        ended = await cluster.end_of(told["execution_id"])
        assert ended.status == "completed"
        assert [call.inputs.body for call in tools.calls if call.label == "work"] == ["2 new"]
        standing = await api.get(f"/api/executions/{told['execution_id']}")
        assert standing["origin_execution_id"] == old
        parted = await api.get(f"/api/executions/{old}/differences/{told['execution_id']}")
        assert (parted["same"], parted["parted"]) == (3, 2)
        first, second = parted["differences"]
        assert (first["task"], first["left"]["status"], first["right"]["status"]) == (
            "work",
            "failed",
            "ok",
        )
        assert (second["task"], second["left"]) == ("last", None)

    served(test, tmp_path)


@pytest.mark.rule("RST-1")
def test_one_key_restarts_once_however_often_it_is_asked(tmp_path: Path) -> None:
    async def test(cluster: Cluster, api: Api, tools: CannedTools) -> None:
        del tools
        old = await failed_one(cluster, api)
        route, key = f"/api/executions/{old}/restart", {"Idempotency-Key": "once"}
        told = await asyncio.gather(*(api.post(route, {}, headers=key) for _ in range(10)))
        (again,) = {one["execution_id"] for one in told}
        await cluster.end_of(again)
        assert len((await api.get("/api/executions"))["executions"]) == 2
        status, refused = await api.ask("POST", route, json={"chosen": ["start"]}, headers=key)
        assert (status, refused["error"]["code"]) == (409, "key_reused")

    served(test, tmp_path)


@pytest.mark.rule("RST-1", "RST-4")
def test_a_server_refuses_with_the_reason(tmp_path: Path) -> None:
    async def test(cluster: Cluster, api: Api, tools: CannedTools) -> None:
        del tools
        old = await failed_one(cluster, api)
        route = f"/api/executions/{old}/restart"
        other = playbook(step("begin", call("ask")), metadata=HEAD)
        await api.ask("POST", "/api/catalog", json={"text": other})
        for asked, said in (
            ({"chosen": ["nowhere"]}, "no step 'nowhere'"),
            ({"chosen": ["load:7"]}, "iteration 7"),
            ({"version": 2}, "step 'start'; step 'load'"),
        ):
            status, told = await api.ask("POST", route, json=asked)
            assert (status, told["error"]["code"]) == (409, "restart_refused")
            assert said in told["error"]["message"]
        status, told = await api.ask("POST", "/api/executions/nobody/restart", json={})
        assert (status, told["error"]["code"]) == (404, "execution_not_found")
        assert len((await api.get("/api/executions"))["executions"]) == 1

    served(test, tmp_path)


@pytest.mark.rule("RST-2", "SRV-3")
def test_another_server_goes_on_with_a_restart_whose_server_died(tmp_path: Path) -> None:
    async def run(cluster: Cluster) -> None:
        first = await cluster.server()
        tools = CannedTools()
        tools.answers["work"] = [breaks_at("2 old")]
        worker = cluster.worker(tools)
        old = await cluster.run(TEXT)
        assert old.status == "failed"
        await cluster.kill_worker(worker)
        begun = await first.restarts.restart(old.execution_id)
        await turns()
        await cluster.kill_server(first)
        await cluster.server()
        cluster.worker(tools)
        ended = await cluster.end_of(begun.execution_id)
        assert ended.status == "completed"
        assert [call.label for call in tools.calls].count("work") == 4

    clustered(run, tmp_path)


BOUND = playbook(
    step(
        "start",
        call("work", body="{{ iter.n }} {{ workload.word }}"),
        loop=loop([1, 2], mode="parallel", flight=2),
    ),
    metadata={"name": "bound", "path": "demo/bound"},
    executor={"spec": {"limit": {"at_once": 1}}},
    workload={"word": "bad"},
)


def when_open(gate: asyncio.Event) -> Any:
    async def answer(asked: Any) -> Any:
        if asked.inputs.body == "1 hold":
            await gate.wait()
        return error("x") if asked.inputs.body == "2 bad" else ok()

    return answer


@pytest.mark.rule("RST-1", "LIMIT-2", "LIMIT-3")
@pytest.mark.parametrize("cancelled", [False, True])
def test_a_restart_waits_for_its_turn_under_a_limit(cancelled: bool, tmp_path: Path) -> None:
    async def run(cluster: Cluster) -> None:
        server, gate, tools = await cluster.server(), asyncio.Event(), CannedTools()
        tools.answers["work"] = [when_open(gate)]
        cluster.worker(tools)
        old = await cluster.run(BOUND)
        assert old.status == "failed"
        holder = await cluster.start(BOUND, {"word": "hold"})
        begun = await server.restarts.restart(old.execution_id, payload={"word": "good"})
        assert begun.status == "queued"
        if cancelled:
            await server.order(begun.execution_id, "cancel")
            assert (await cluster.end_of(begun.execution_id)).status == "cancelled"
        gate.set()
        assert (await cluster.end_of(holder)).status == "completed"
        if not cancelled:
            assert (await cluster.end_of(begun.execution_id)).status == "completed"
        bodies = [call.inputs.body for call in tools.calls]
        assert bodies.count("2 good") == (not cancelled)
        assert "1 good" not in bodies

    clustered(run, tmp_path)


@pytest.mark.rule("RST-1", "WAIT-4")
def test_a_signal_that_nothing_had_taken_is_there_again(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate(error("x"))
        tools.answers["work"] = [gate, ok("done")]
        server = await cluster.server()
        cluster.worker(tools)
        text = playbook(
            step("start", waits("first", signal="go"), arcs=[arc("then")]),
            step("then", call("work"), waits("second", signal="go"), sets("keep", n="{{ _prev }}")),
        )
        old = await cluster.start(text)
        for number in (1, 2):
            await server.signal(old, SendSignal(signal="go", data=number, sender="me"))
        await gate.let_go((await gate.held(1))[0])
        assert (await cluster.end_of(old)).status == "failed"
        row = await server.restarts.restart(old)
        ended = await cluster.end_of(row.execution_id)
        assert (ended.status, ended.ctx["n"]) == ("completed", 2)

    clustered(test, tmp_path)


@pytest.mark.rule("WAIT-7")
def test_what_has_ended_waits_for_nobody(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        cluster.worker(CannedTools())
        execution_id = await cluster.start(playbook(step("start", waits("ask", approval="Pay?"))))
        async with api_of(server) as api:
            while not (await api.get("/api/waiting"))["waiting"]:
                await turns(1)
            await server.order(execution_id, "cancel")
            await cluster.end_of(execution_id)
            assert (await api.get("/api/waiting"))["waiting"] == []

    clustered(test, tmp_path)
