"""`noetl validate` in the same process: many small documents, quickly."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from noetl.cli.validate import validate

VALID = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: small, path: tests/small}
workflow:
  - step: start
    tool:
      - rest: {kind: noop}
"""


def checked(text: str, *words: str) -> Result:
    return CliRunner().invoke(validate, [*words, "-"], input=text, standalone_mode=False)


def test_the_return_value_is_the_exit_code() -> None:
    assert checked(VALID).return_value == 0
    assert checked("").return_value == 2


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "caret"),
    [
        ("noetl.io/v2", "noetl.io/v1", "wrong-value", "apiVersion: noetl.io/v1", "noetl.io/v1"),
        ("step: start", "step: [a]", "wrong-type", "  - step: [a]", "step"),
        ("kind: noop", "kind: htp", "unknown-kind", "      - rest: {kind: htp}", "htp"),
        ("workflow:", "vars: {}\nworkflow:", "root-vars", "vars: {}", "vars"),
        ("    tool:", "    when: true\n    tool:", "step-when", "    when: true", "when"),
    ],
)
def test_the_caret_is_under_the_fault(old: str, new: str, code: str, line: str, caret: str) -> None:
    shown = checked(VALID.replace(old, new, 1)).output.splitlines()
    head = next(place for place, text in enumerate(shown) if f"error[{code}]" in text)
    source, carets = shown[head + 3], shown[head + 4]
    assert source.endswith(f"| {line}")
    start = carets.index("^")
    assert source[start : start + len(caret)] == caret
    assert carets.count("^") == len(caret)


TESTS = "playbook: small.yaml\ntests:\n  - name: one\n"


def test_a_file_of_tests_is_no_broken_playbook() -> None:
    told = checked(TESTS)
    assert told.return_value == 0
    assert "tests of a playbook; run them with: noetl test" in told.output
    assert json.loads(checked(TESTS, "--json").output)["valid"]
    assert checked(TESTS.replace("name", "nmae")).return_value == 3


def test_all_faults_are_shown_at_once_and_in_order() -> None:
    text = VALID.replace("v2", "v1").replace("Playbook", "Playbok").replace("noop", "nop")
    told = json.loads(checked(text, "--json").output)
    assert [finding["line"] for finding in told["findings"]] == [1, 2, 7]


def test_the_worst_answer_decides(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(VALID)
    bad.write_text("")
    missing = tmp_path / "missing.yaml"

    def code(*files: Path) -> object:
        words = [str(file) for file in files]
        return CliRunner().invoke(validate, words, standalone_mode=False).return_value

    assert code(good, good) == 0
    assert code(bad, good) == 2
    assert code(missing, bad, good) == 3
