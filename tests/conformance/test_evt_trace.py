"""EVT-1: one trace from whoever asks, through the execution and its children, to what they call."""

from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_srv import on_api, register
from tests.conformance.test_tool_http import ask
from tests.support.api import Api
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster
from tests.support.http_server import HttpServer
from tests.support.steps import call, playbook, step, task

from noetl.kinds.http import HttpInputs
from noetl.messages.trace import trace_id, trace_in, traceparent
from noetl.tools.playbook import PlaybookTool

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADER = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
CHILD = playbook(step("inner", call("work")), metadata={"name": "child", "path": "tests/child"})
PARENT = playbook(step("outer", task("call", "playbook", path="tests/child")))


class WithPlaybooks(CannedTools):
    """Canned answers for all but `playbook`, which is the real one."""

    def __getitem__(self, kind: str) -> Any:
        return PlaybookTool() if kind == "playbook" else self


async def events_of(api: Api, execution_id: str) -> list[dict[str, Any]]:
    await api.get(f"/api/executions/{execution_id}/result", wait=30)
    found = await api.get(f"/api/executions/{execution_id}/events", limit=100)
    return list(found["events"])


@pytest.mark.rule("EVT-1", "SRV-1", "TOOL-1")
@pytest.mark.parametrize("sent", [HEADER, {}, {"traceparent": "nonsense"}])
def test_a_trace_goes_from_the_request_to_the_last_child(
    tmp_path: Path, sent: dict[str, str]
) -> None:
    async def test(cluster: Cluster, api: Api) -> None:
        tools = WithPlaybooks()
        cluster.worker(tools)
        await register(api, CHILD)
        await register(api, PARENT)
        asked = {"path": "tests/scenario"}
        begun = await api.post("/api/executions", asked, headers=sent)
        parent = begun["execution_id"]
        above = await events_of(api, parent)
        (child,) = (await api.get("/api/executions", parent=parent))["executions"]
        below = await events_of(api, child["execution_id"])
        known = TRACE if sent == HEADER else parent
        assert {event["trace_id"] for event in above + below} == {known}
        assert above[0]["parent_id"] == (SPAN if sent == HEADER else None)
        (done,) = [event for event in above if event["name"] == "task.done"]
        assert below[0]["parent_id"] == done["task_run_id"]
        assert below[0]["data"]["parent_execution_id"] == parent
        (work,) = [made for made in tools.calls if made.label == "work"]
        assert work.trace_id == known
        (told,) = [event for event in below if event["name"] == "task.done"]
        assert told["data"]["outcome"]["meta"]["trace_id"] == known

    on_api(test, tmp_path)


@pytest.mark.rule("EVT-1", "SRV-1")
def test_executions_that_are_started_together_share_the_trace(tmp_path: Path) -> None:
    async def test(cluster: Cluster, api: Api) -> None:
        cluster.worker(CannedTools())
        await register(api, CHILD)
        many = {"executions": [{"path": "tests/child"}, {"path": "tests/child"}]}
        begun = await api.post("/api/executions/batch", many, headers=HEADER)
        for one in begun["executions"]:
            events = await events_of(api, one["execution"]["execution_id"])
            assert {event["trace_id"] for event in events} == {TRACE}

    on_api(test, tmp_path)


@pytest.mark.rule("EVT-1", "TOOL-0")
def test_an_http_task_tells_its_trace(http_server: HttpServer) -> None:
    inputs = HttpInputs(url=f"{http_server.url}/echo")
    ask(inputs, execution_id="x1", task_run_id="4.1", trace_id=TRACE)
    ask(inputs, execution_id="x1", task_run_id="4.1", trace_id="x1")
    sent = [one.headers["traceparent"] for one in http_server.seen]
    assert sent == [traceparent(TRACE, "x1", "4.1"), traceparent("x1", "x1", "4.1")]
    assert [trace_in(header)[0] for header in sent] == [TRACE, trace_id("x1")]


@pytest.mark.rule("EVT-1", "TOOL-0")
def test_a_header_of_the_task_itself_is_left_alone(http_server: HttpServer) -> None:
    own = HttpInputs(url=f"{http_server.url}/echo", headers={"Traceparent": "mine"})
    ask(own, trace_id=TRACE)
    assert [one.headers["traceparent"] for one in http_server.seen] == ["mine"]
