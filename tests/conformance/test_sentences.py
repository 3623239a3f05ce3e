"""Sentences of rules that no other test says: what a rule promises beside its main point."""

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered
from tests.support.scenario import Gate, ok, scenario
from tests.support.steps import arc, call, noop, playbook, step

from noetl.messages import events as e
from noetl.messages.codec import recorded_mappings
from noetl.messages.envelope import envelope
from noetl.node.work_plane import WorkPlane


@pytest.mark.rule("DOC-3")
def test_a_payload_is_merged_deeply_before_anything_is_rendered() -> None:
    own = {
        "who": "all",
        "greeting": "hello {{ workload.who }}",
        "deep": {"kept": 1, "changed": 1, "list": [1, 2], "said": "{{ workload.greeting }}!"},
    }
    given = {"who": "me", "deep": {"changed": 2, "list": [3]}, "new": {"a": ["{{ 1 }}"]}}
    ran = scenario(step("start", noop("x")), workload=own).run(given)
    assert ran.execution.workload == {
        "who": "me",
        "greeting": "hello me",
        "deep": {"kept": 1, "changed": 2, "list": [3], "said": "hello me!"},
        "new": {"a": ["{{ 1 }}"]},
    }


@pytest.mark.rule("DOC-3")
def test_a_payload_reaches_nothing_but_the_workload() -> None:
    given = {
        "executor": {"spec": {"entry_step": "other", "pool": "mine"}},
        "spec": {"policy": {"fail_fast": True}},
        "keychain": [{"name": "a", "kind": "bearer"}],
        "workflow": [],
        "ctx": {"a": 1},
        "start": {"tool": []},
    }
    ran = scenario(step("start", call("ask", body="{{ ctx }}")), step("other", noop("x"))).run(
        given
    )
    assert ran.execution.workload == given
    assert (ran.status, ran.inputs("ask")) == ("completed", [{}])
    assert ran.one(e.TokenEnqueued).pool == "default"


@pytest.mark.rule("DOC-4")
@pytest.mark.parametrize("kind", ["local", "distributed"])
def test_every_runtime_takes_either_kind_of_executor(tmp_path: Path, kind: str) -> None:
    text = playbook(step("start", noop("x")), executor={"kind": kind})
    assert scenario(step("start", noop("x")), executor={"kind": kind}).run().status == "completed"

    async def test(cluster: Cluster) -> None:
        await cluster.server()
        cluster.worker(CannedTools())
        assert (await cluster.run(text)).status == "completed"

    clustered(test, tmp_path)


@pytest.mark.rule("EVT-0")
def test_a_token_says_where_it_comes_from_and_what_it_belongs_to() -> None:
    made = scenario(step("start", noop("x"), arcs=[arc("more", a=1)]), step("more", noop("y")))
    asked = msgspec.structs.replace(made.request(None, None), version="7", parent_execution_id="x0")
    made.request = lambda *_: asked  # type: ignore[method-assign]
    ran = made.run()
    raw = [one for row in ran.rows for one in recorded_mappings("x1", row.first, row.events)]
    seen = [
        envelope(one, execution_id="x1", seq=seq, at=0, trace_id=None)
        for seq, one in enumerate(raw, 1)
    ]
    token = next(one for one in seen if one["name"] == "token.created" and one["step"] == "more")
    (first, _) = ran.of(e.StepScheduled)
    assert (token["execution_id"], token["step"], token["trace_id"]) == ("x1", "more", "x1")
    assert token["data"]["args"] == {"a": 1}
    assert token["data"]["parent_step_run_id"] == first.step_run_id
    request = seen[0]["data"]
    assert (request["path"], request["version"]) == ("tests/scenario", "7")
    assert request["parent_execution_id"] == "x0"


def listening() -> set[str]:
    """The sockets of this process that somebody could connect to."""
    own = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            own.add(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError:
            continue  # closed meanwhile
    waiting = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
                waiting.add(fields[1])
    return waiting


@pytest.mark.rule("WRK-1")
def test_a_worker_can_be_reached_by_nobody(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.server()
        before = listening()
        gate, tools = Gate(ok()), CannedTools()
        tools.answers["ask"] = [gate]
        cluster.worker(tools)
        execution_id = await cluster.start(playbook(step("start", call("ask"))))
        (key,) = await gate.held(1)
        assert listening() == before
        await gate.let_go(key)
        assert (await cluster.end_of(execution_id)).status == "completed"

    clustered(test, tmp_path)


def member(cluster: Cluster, tools: CannedTools, **changes: Any) -> WorkPlane:
    """A worker with settings of its own."""
    usual = cluster.settings
    cluster.settings = msgspec.structs.replace(usual, **changes)
    try:
        return cluster.worker(tools)
    finally:
        cluster.settings = usual


@pytest.mark.rule("WRK-2", "DOC-4")
def test_steps_run_in_the_pool_that_the_executor_names(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.server()
        other, mine = CannedTools(), CannedTools()
        member(cluster, other)
        member(cluster, mine, pool="heavy")
        executor = {"spec": {"pool": "heavy"}}
        for _ in range(3):
            text = playbook(step("start", call("ask")), executor=executor)
            assert (await cluster.run(text)).status == "completed"
        assert (len(other.calls), len(mine.calls)) == (0, 3)

    clustered(test, tmp_path)


@pytest.mark.rule("WRK-2")
def test_a_worker_runs_as_many_parts_at_once_as_it_was_told(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.server()
        tools, gate = CannedTools(), Gate()
        tools.answers["ask"] = [gate]
        member(cluster, tools, concurrency=2)
        text = playbook(step("start", call("ask")))
        started = [await cluster.start(text) for _ in range(4)]
        for _ in range(4):
            key = (await gate.held(1))[0]
            for _ in range(20):  # turns in which a third could have begun
                await asyncio.sleep(0)
            assert len(await gate.held(1)) <= 2
            await gate.let_go(key)
        for execution_id in started:
            assert (await cluster.end_of(execution_id)).status == "completed"

    clustered(test, tmp_path)
