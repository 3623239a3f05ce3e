"""`noetl test`: playbook tests in YAML, run without touching the world."""

from pathlib import Path

import pytest
from tests.house.markdown import blocks_of
from tests.system.program import ROOT, Answer, noetl

PAGE = ROOT / "docs" / "learn" / "05-testing-playbooks.md"
PLAYBOOK, TESTS = [block.text for block in blocks_of(PAGE) if block.language == "yaml"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "weather.yaml").write_text(PLAYBOOK)
    (tmp_path / "weather.test.yaml").write_text(TESTS)
    return tmp_path


def run_tests(folder: Path, *words: str, changed: dict[str, str] | None = None) -> Answer:
    text = TESTS
    for old, new in (changed or {}).items():
        assert old in text
        text = text.replace(old, new)
    (folder / "weather.test.yaml").write_text(text)
    home = folder / "home"
    answer = noetl("test", folder / "weather.test.yaml", *words, NOETL_HOME=str(home))
    assert not home.exists(), "tests leave nothing behind"
    return answer


def test_the_page_shows_what_happens(folder: Path) -> None:
    answer = run_tests(folder)
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert [line.split(" (")[0] for line in lines[1:4]] == [
        "  ok    a warm day",
        "  ok    a busy server is tried again",
        "  ok    after three attempts it gives up",
    ]
    assert lines[-1].startswith("3 tests passed in ")


def test_json_is_one_object_per_file(folder: Path) -> None:
    [told] = run_tests(folder, "--json").objects()
    assert (told["passed"], told["failed"]) == (3, 0)
    assert [list(test) for test in told["tests"]] == [["name", "ok", "problems", "duration_ms"]] * 3


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("warm: 1, cold: 0", "warm: 2", "steps.warm: expected 2 runs, got 1"),
        ("ctx: { degrees: 25 }", "ctx: { degrees: 26 }", "ctx.degrees: expected 26, got 25"),
        ("ctx: { degrees: 25 }", "ctx: { x: 1 }", "ctx.x: expected 1, got nothing"),
        ("ctx: { degrees: 25 }", "result: 7", "result: expected 7, got null"),
        ("kind: retry_exhausted", "kind: http", "error.kind: expected 'http', got"),
        (
            "error: { kind: retry_exhausted, step: fetch }",
            "steps: {}",
            "status: expected completed",
        ),
        ("step.done]", "step.failed]", "events[4]: expected step.failed after task.done"),
        ("steps: { warm: 1", "steps: { wram: 1", "'wram', which is not a step of the playbook"),
        ("step.done]", "step.ended]", "events[4]: 'step.ended' is not an event name"),
        (
            "fetch.get:",
            "fetch.gets:",
            "which is not a task of the playbook; did you mean 'fetch.get'?",
        ),
        (
            "- ok: { status: 200, data: { degrees: 25 } }",
            "[]",
            "call 1 of fetch.get needs an outcome",
        ),
        ("- ok: { status: 200, data: { degrees: 25 } }", "- fine: 1", "expected `ok` or `error`"),
    ],
)
def test_what_differs_is_said(folder: Path, old: str, new: str, problem: str) -> None:
    answer = run_tests(folder, "--json", changed={old: new})
    assert answer.code == 1
    [told] = answer.objects()
    assert told["failed"] == 1
    [failed] = [test for test in told["tests"] if not test["ok"]]
    assert any(problem in found for found in failed["problems"]), failed


def test_a_call_without_an_outcome_shows_its_inputs(folder: Path) -> None:
    answer = run_tests(folder, changed={"- ok: { status: 200, data: { degrees: 25 } }": "[]"})
    assert "call 1 of fetch.get needs an outcome, and the test has none: add it" in answer.out
    assert "https://example.com/weather/Graz" in answer.out


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        ("playbook: weather.yaml", "playbook: nowhere.yaml", 3, "cannot read"),
        ("playbook: weather.yaml", "other: 1", 3, "is not a playbook test file"),
        ("expect:", "expects:", 3, "'tests[0]' has no key 'expects'; did you mean 'expect'?"),
        ("tests:", "workflow: []\ntests:", 3, "it is a playbook; name the file of its tests"),
        ("steps: { warm: 1", "steps: { warm: x", 3, "expected a whole number"),
        ("tests:", "tests: [", 3, "weather.test.yaml:"),
    ],
)
def test_a_file_that_is_no_test_is_exit_3(
    folder: Path, old: str, new: str, code: int, said: str
) -> None:
    answer = run_tests(folder, changed={old: new})
    assert answer.code == code
    assert said in answer.err


def test_an_invalid_playbook_is_exit_2(folder: Path) -> None:
    (folder / "weather.yaml").write_text(PLAYBOOK.replace("kind: http", "kind: htpp"))
    answer = run_tests(folder)
    assert answer.code == 2
    assert "error[unknown-kind]" in answer.err


CODE = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: code, path: tests/code}
workload: {number: 20}
workflow:
  - step: start
    tool:
      - get: {kind: http, url: http://127.0.0.1:9/}
      - double: {kind: python, args: {number: "{{ _prev }}"}, code: "result = 2 * number"}
"""
CODE_TESTS = """playbook: code.yaml
tests:
  - name: the code is right
    outcomes: {get: {ok: 21}}
    expect: {status: completed, result: 42}
"""


@pytest.mark.rule("CLI-1")
def test_code_is_run_for_real_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "code.yaml").write_text(CODE)

    def tested(text: str, *words: str) -> Answer:
        (tmp_path / "code.test.yaml").write_text(text)
        return noetl("test", tmp_path / "code.test.yaml", *words, NOETL_HOME=str(tmp_path / "home"))

    assert "call 1 of start.double needs an outcome" in tested(CODE_TESTS).out
    assert tested(CODE_TESTS, "--run", "python").code == 0
    wrong = tested(CODE_TESTS.replace("42", "41"), "--run", "python")
    assert (wrong.code, "result: expected 41, got 42" in wrong.out) == (1, True)
    canned = CODE_TESTS.replace("{ok: 21}", "{ok: 21}, double: {ok: 5}").replace("42", "5")
    assert tested(canned, "--run", "python").code == 0, "an outcome of the test comes first"
    refused = tested(CODE_TESTS, "--run", "pyton")
    assert (refused.code, "no such kind" in refused.err) == (3, True)


WAITS = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: waits, path: learn/waits }
workflow:
  - step: start
    loop: { in: [1, 2], iterator: n, spec: { mode: parallel } }
    tool:
      - ask:
          kind: wait
          approval: "Go on with {{ iter.n }}?"
          spec:
            policy:
              rules:
                - when: "{{ outcome.wait.by == 'approval' and outcome.result.approved }}"
                  then: { do: continue }
                - else: { then: { do: fail } }
"""
ANSWERS = """\
playbook: weather.yaml
tests:
  - name: a wait is answered by its outcome
    outcomes: { ask: { ok: { approved: true }, wait: { by: approval } } }
    expect: { status: completed, steps: { start: 1 } }
"""


def test_a_wait_takes_no_time_and_is_answered_by_its_outcome(folder: Path) -> None:
    (folder / "weather.yaml").write_text(WAITS)
    answer = run_tests(folder, changed={TESTS: ANSWERS})
    assert answer.code == 0, answer.out
    assert answer.out.splitlines()[-1].startswith("1 test passed in ")
