"""What TOOL-0 and OUT ask of `script`."""

from pathlib import Path

import pytest
from tests.unit.tools.process.bench import Bench

from noetl.kinds.code import ScriptInputs


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.rule("TOOL-0", "OUT-3")
def test_a_file_beside_the_playbook_gets_all_its_inputs(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "count.py").write_text(
        "import json, os, sys\n"
        "print(json.dumps([sys.argv[1:], sys.stdin.read(), os.environ['NAME']]))"
    )
    inputs = ScriptInputs(
        path="count.py", interpreter="python3", args=["a", 1], stdin="text", env={"NAME": "x"}
    )
    outcome = bench.run(inputs, folder=str(tmp_path))
    assert outcome.result["data"] == [["a", "1"], "text", "x"]


@pytest.mark.rule("TOOL-0")
def test_a_script_stays_below_the_playbook(bench: Bench, tmp_path: Path) -> None:
    error = bench.error(ScriptInputs(path="../other.sh"), folder=str(tmp_path))
    assert error["kind"] == "input"


@pytest.mark.rule("OUT-4")
def test_a_missing_interpreter_is_named(bench: Bench) -> None:
    error = bench.error(ScriptInputs(code="x", interpreter="no-such-language"))
    assert error["kind"] == "not_found"
    assert "'no-such-language' is not installed" in error["message"]


@pytest.mark.rule("OUT-2", "OUT-3")
def test_the_exit_code_is_in_the_block(bench: Bench) -> None:
    outcome = bench.run(ScriptInputs(code="exit 4", interpreter="sh"))
    assert outcome.block == {"exit_code": 4, "signal": None}
    assert (outcome.error or {})["kind"] == "exit"


@pytest.mark.rule("TASK-7")
def test_a_timeout_ends_the_script(bench: Bench) -> None:
    error = bench.error(ScriptInputs(code="sleep 600", interpreter="sh"), total=0.2)
    assert (error["kind"], error["retryable"]) == ("timeout", True)
