"""EVT-4: no event holds a value that is nested more deeply than its readers can walk."""

from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_srv import execute, on_api, register
from tests.support.api import Api
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster
from tests.support.scenario import ok, scenario
from tests.support.steps import arc, call, loop, noop, otherwise, playbook, sets, step

from noetl.masking import KNOWN
from noetl.messages.depth import DEEPEST

WORDS = "a value is nested deeper than 200 levels"


def nested(levels: int, value: Any = 1) -> Any:
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.rule("EVT-4")
def test_a_result_that_is_nested_too_deeply_is_an_error() -> None:
    fine = scenario(step("start", call("ask"))).answers("ask", ok(nested(DEEPEST - 10))).run()
    assert fine.status == "completed"
    for levels in (DEEPEST, 500, 900, 20_000):
        ran = scenario(step("start", call("ask"))).answers("ask", ok(nested(levels))).run()
        assert (ran.status, ran.error["kind"]) == ("failed", "result")
        assert WORDS in ran.error["message"]


@pytest.mark.rule("EVT-4")
def test_nothing_grows_without_end_by_being_passed_on() -> None:
    wrap = noop("wrap", otherwise(set_ctx={"x": ["{{ ctx.x }}"]}))
    ran = scenario(
        step("start", sets("begin", x=[1]), arcs=[arc("more")]),
        step("more", wrap, arcs=[arc("more", "event.name == 'step.done'")]),
    ).run()
    assert (ran.status, ran.error["step"], ran.error["kind"]) == ("failed", "more", "result")
    assert WORDS in ran.error["message"]
    assert str(ran.ctx["x"]).count("[") < DEEPEST


@pytest.mark.rule("EVT-4")
def test_nor_does_what_a_token_carries() -> None:
    ran = scenario(
        step("start", noop("rest"), arcs=[arc("more", x=[1])]),
        step("more", noop("rest"), arcs=[arc("more", x=["{{ args.x }}"])]),
    ).run()
    assert ran.status == "failed"
    assert WORDS in ran.error["message"]


@pytest.mark.rule("EVT-4")
def test_nor_a_list_that_is_written_around_it() -> None:
    around: Any = "{{ workload.x }}"
    for _ in range(60):
        around = [around]
    ran = scenario(step("start", noop("rest"), loop=loop(around))).run({"x": nested(180)})
    assert (ran.status, ran.error["kind"]) == ("failed", "template")
    assert WORDS in ran.error["message"]


@pytest.mark.rule("EVT-4")
def test_what_is_sent_is_refused_and_what_is_recorded_can_be_read(tmp_path: Path) -> None:
    """Also where a secret is known, and everything is walked through once more."""
    KNOWN.add("deep-secret-71a9")
    inside = {"a": "deep-secret-71a9"}
    text = playbook(
        step("start", call("ask", otherwise(set_ctx={"x": "{{ outcome.result }}"}))),
        metadata={"name": "deep", "path": "demo/deep"},
    )

    async def test(cluster: Cluster, api: Api) -> None:
        await register(api, text)
        for levels in (DEEPEST, 500, 900):
            for path, body in (
                ("/api/executions", {"path": "demo/deep", "payload": {"x": nested(levels)}}),
                ("/api/executions/x1/signal", {"name": "go", "data": nested(levels + 1)}),
            ):
                status, told = await api.ask("POST", path, json=body)
                assert (status, told["error"]["code"]) == (422, "too_deep"), told
        tools = CannedTools()
        tools.answers["ask"] = [ok(nested(DEEPEST - 10, inside))]
        cluster.worker(tools)
        execution_id = await execute(api, "demo/deep", payload={"x": nested(DEEPEST - 10, inside)})
        assert (await cluster.end_of(execution_id)).status == "completed"
        for route in ("", "/state", "/result", "/events", "/explanation", "/outline", "/verify"):
            status, told = await api.ask("GET", f"/api/executions/{execution_id}{route}")
            assert status == 200, (route, told)
            assert "deep-secret" not in str(told)

    on_api(test, tmp_path)
