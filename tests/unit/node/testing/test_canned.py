"""Canned outcomes: what a task is told instead of calling its tool."""

from typing import Any

import pytest

from noetl.kinds.http import HttpInputs
from noetl.node.testing.canned import CannedBox, faults_in, outcome_of
from noetl.playbook.load import load_valid
from noetl.playbook.plan import make_plan
from noetl.tools.noop import NoopTool
from noetl.tools.tool import ToolCall

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: canned, path: tests/canned}
workbook: {tasks: {shared: {kind: http, url: "https://example.com"}}}
workflow:
  - step: start
    tool:
      - get: {kind: http, url: "https://example.com"}
      - each:
          kind: iterator
          in: [1]
          iterator: x
          tool: [{inner: {kind: http, url: "https://example.com"}}]
      - lend: {kind: workbook, name: shared}
"""
PLAN = make_plan(load_valid(TEXT), TEXT)


def call(step: str = "start", label: str = "get") -> ToolCall[Any]:
    return ToolCall(
        inputs=HttpInputs(url="https://example.com"),
        execution_id="x1",
        step=step,
        label=label,
        task_run_id="4.1",
        scratch="x1/4.0",
    )


@pytest.mark.parametrize(
    ("kind", "canned", "status", "block", "name"),
    [
        ("http", {"ok": 1}, "ok", None, None),
        ("http", {"ok": {"status": 200, "data": 1}}, "ok", {"status": 200}, None),
        ("http", {"ok": 1, "http": {"status": 204}}, "ok", {"status": 204}, "http"),
        ("python", {"ok": {"status": 200}}, "ok", None, None),
        ("http", {"error": {}, "http": {"status": 503}}, "error", {"status": 503}, "http"),
        ("postgres", {"error": {}, "pg": {"code": "1"}}, "error", {"code": "1"}, "pg"),
    ],
)
def test_an_outcome(
    kind: str, canned: dict[str, Any], status: str, block: Any, name: str | None
) -> None:
    outcome = outcome_of(kind, canned)
    assert (outcome.status, outcome.block, outcome.block_name) == (status, block, name)


@pytest.mark.rule("OUT-3")
@pytest.mark.parametrize(
    ("canned", "retryable"),
    [
        ({"error": {}, "http": {"status": 503}}, True),
        ({"error": {}, "http": {"status": 429}}, True),
        ({"error": {}, "http": {"status": 404}}, False),
        ({"error": {"retryable": False}, "http": {"status": 503}}, False),
        ({"error": {"retryable": True}}, True),
        ({"error": {}}, False),
    ],
)
def test_the_status_settles_what_is_retryable(canned: dict[str, Any], retryable: bool) -> None:
    error = outcome_of("http", canned).error
    assert error is not None
    assert (error["retryable"], error["kind"]) == (retryable, "http")


def test_a_list_serves_call_by_call_and_then_no_more() -> None:
    box = CannedBox({"get": [{"ok": 1}, {"ok": 2}]})
    answers = [box.answer("http", call()) for _ in range(3)]
    assert [answer.result for answer in answers[:2]] == [1, 2]
    assert answers[2].status == "error"
    [sentence] = box.missing
    assert sentence.startswith("call 3 of start.get needs an outcome, and the test has 2 for it: ")
    assert "or run the task by `noetl test --run http`; its inputs were " in sentence
    assert "https://example.com" in sentence


def test_the_nearer_name_wins_and_a_mapping_serves_every_call() -> None:
    box = CannedBox({"get": [{"ok": "any"}], "start.get": {"ok": "own"}})
    assert [box.answer("http", call()).result for _ in range(3)] == ["own"] * 3
    assert box.answer("http", call(step="other")).result == "any"
    assert box.missing == []


def test_every_kind_is_canned_but_those_that_touch_nothing() -> None:
    assert CannedBox({}).runs("transform", call()) is not None
    assert CannedBox({"get": {"ok": 1}}).runs("transform", call()) is None
    box = CannedBox({})
    assert isinstance(box["noop"], NoopTool)
    assert not isinstance(box["snowflake"], NoopTool)
    assert box.built == []


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ({"get": [{"ok": 1}], "start.inner": {"ok": 1}, "shared": {"ok": 1}}, []),
        ({"gett": []}, ["'gett', which is not a task of the playbook; did you mean 'get'?"]),
        ({"zzz": []}, ["'zzz', which is not a task of the playbook"]),
        ({"get": [{}]}, ["expected `ok` or `error`, and at most one block beside it, got nothing"]),
        ({"get": {"ok": 1, "error": {}}}, ["got ok, error"]),
        ({"get": {"ok": 1, "http": {}, "pg": {}}}, ["got ok, http, pg"]),
        ({"get": {"error": "text"}}, ["`error` must be a mapping"]),
    ],
)
def test_faults_of_the_outcomes_themselves(outcomes: dict[str, Any], said: list[str]) -> None:
    found = faults_in(outcomes, PLAN)
    assert len(found) == len(said)
    for sentence, part in zip(found, said, strict=True):
        assert part in sentence
