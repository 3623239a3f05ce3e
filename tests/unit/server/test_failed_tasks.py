"""What is known of a failed task: lines of the playbook, answers, SQL, inputs, printed lines."""

from typing import Any

import pytest
from tests.support.scenario import Scenario, error, scenario
from tests.support.steps import call, step

from noetl.cli.running.details import detail_lines, failure_lines
from noetl.masking import KNOWN
from noetl.messages import events as e
from noetl.messages.codec import decode_events
from noetl.messages.reference import Reference
from noetl.playbook.load import load_valid
from noetl.ports.event_log import PrintedLine
from noetl.server.failed_tasks import FailedTask, PlaybookText, body_words, link_of
from noetl.server.views.explanation import explanation_of

CODE = """apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: code, path: tests/code }
workflow:
  - step: start
    tool:
      - calc:
          kind: python
          code: |
            def main():
                return half(0)

            def half(n):
                return 1 / n
      - one:
          kind: python
          code: "raise ValueError('no')"
      - lent: { kind: workbook, name: shared }
workbook:
  tasks:
    shared:
      kind: python
      code: |
        result = missing
"""
TOLD = """Traceback (most recent call last):
  File "<code>", line 2, in main
    return half(0)
  File "<code>", line 5, in half
    return 1 / n
ZeroDivisionError: division by zero"""


def failed(task: str, **outcome: Any) -> e.TaskDone:
    return e.TaskDone(
        step="start",
        step_run_id="4.0",
        task_run_id="4.1",
        task=task,
        do="fail",
        outcome={"status": "error", "error": {"kind": "python", "message": "no"}, **outcome},
    )


def link(task: str, **outcome: Any) -> FailedTask:
    return link_of(failed(task, **outcome), None, PlaybookText(load_valid(CODE), CODE))


def test_a_traceback_has_the_lines_of_the_playbook() -> None:
    assert link("calc", py={"traceback": TOLD}).traceback == [
        "  line 11, in main",
        "    return half(0)",
        "  line 14, in half",
        "    return 1 / n",
        "ZeroDivisionError: division by zero",
    ]


@pytest.mark.parametrize(
    ("task", "outcome", "line"),
    [("one", {}, 17), ("lent", {"workbook": {"task": "shared", "kind": "python"}}, 24)],
)
def test_the_line_of_other_forms_of_code(task: str, outcome: dict[str, Any], line: int) -> None:
    told = 'Traceback (most recent call last):\n  File "<code>", line 1, in <module>\nNo: no'
    assert (
        link(task, py={"traceback": told}, **outcome).traceback[0] == f"  line {line}, in <module>"
    )


def test_code_that_was_translated_has_the_lines_of_its_author() -> None:
    lines = [1] * 9 + [30, 31, 32, 33, 34] + [1] * 20
    document = PlaybookText(load_valid(CODE), CODE, lines)
    found = link_of(failed("calc", py={"traceback": TOLD}), None, document)
    assert found.traceback[0] == "  line 31, in main"


def test_code_that_is_not_found_says_which_line_of_the_code() -> None:
    document = PlaybookText(load_valid(CODE), CODE.replace("return half(0)", "return half(1)"))
    found = link_of(failed("calc", py={"traceback": TOLD}), None, document)
    assert found.traceback[0] == "  line 2 of the code, in main"


def test_an_answer_over_http_is_told_with_its_body() -> None:
    found = link("one", http={"status": 500}, result={"status": 500, "data": {"why": "full"}})
    assert (found.http_status, found.body) == (500, '{"why":"full"}')
    assert '    the answer: 500, {"why":"full"}' in list(detail_lines(found))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (None, None),
        ("", None),
        ("x" * 3000, "x" * 2000 + "…"),
        (Reference("memory", "x1/a", 4000, "a"), "(4000 bytes, kept outside the log)"),
        (Reference("memory", "x1/a", 40, "a", sealed="s"), "***"),
        ({"a": [Reference("memory", "x1/a", 40, "a", sealed="s")]}, '{"a":["***"]}'),
    ],
)
def test_bodies_are_cut_and_masked(body: Any, words: str | None) -> None:
    assert body_words(body) == words


@pytest.mark.parametrize(
    "block",
    [
        {"pg": {"message": "no", "place": "LINE 2: form b\n        ^"}},
        {"duckdb": {"message": 'Parser Error: at "form"\n\nLINE 2: form b\n        ^'}},
    ],
)
def test_the_place_of_a_fault_in_sql(block: dict[str, Any]) -> None:
    found = link("one", **block)
    assert found.place == ["LINE 2: form b", "        ^"]
    assert "    LINE 2: form b" in list(detail_lines(found))


def test_a_message_of_several_lines_is_told_whole() -> None:
    found = link("one", error={"kind": "python", "message": "libs fail: x\nERROR: no such x"})
    assert "    ERROR: no such x" in list(detail_lines(found))


def in_short(text: str) -> Scenario:
    told = scenario(step("start", call("get", body="{{ workload.a }}")), workload={"a": text})
    return told.answers("get", error("http", "closed", http={"status": 404}))


@pytest.mark.rule("OUT-1")
async def test_rendered_inputs_stand_beside_their_templates() -> None:
    async with in_short("seven").running() as (local, active):
        await active.finished
        done = await local.storage.log.read("x1", limit=1000)
        number = next(
            event.task_run_id
            for one in done
            for event in decode_events(one.events)
            if isinstance(event, e.TaskDone)
        )
        local.storage.printed.keep(printed("before it failed", number))
        local.storage.printed.keep(printed("of another", "9.1"))
        row = await local.row("x1")
        found = await explanation_of(local.storage, row, active.execution, active.plan)
    lines = list(failure_lines(found))
    assert "    body: {{ workload.a }}" in lines
    assert lines[lines.index("    body: {{ workload.a }}") + 1] == "      = seven"
    assert lines[-2:] == ["    it printed:", "    | before it failed"]


def printed(text: str, task_run_id: str) -> PrintedLine:
    return PrintedLine(
        execution_id="x1",
        step="start",
        task_run_id=task_run_id,
        attempt=1,
        at=0,
        stream="stdout",
        text=text,
    )


@pytest.mark.rule("KEY-2")
@pytest.mark.parametrize("text", ["a hunter2-secret b", "x" * 995 + "hunter2-secret"])
def test_secrets_in_them_are_masked_before_they_are_cut(text: str) -> None:
    KNOWN.add("hunter2-secret")
    done = in_short("x").run({"a": text}).one(e.TaskDone)
    assert "hunter" not in str(done.inputs)
    assert "***" in done.inputs["body"]
    assert len(done.inputs["body"]) <= 1001


def test_inputs_of_what_went_well_are_not_kept() -> None:
    told = scenario(step("start", call("get", body="{{ workload.a }}")), workload={"a": 1})
    assert told.run().one(e.TaskDone).inputs == {}
