"""What TOOL-0, OUT and TASK ask of `shell`."""

import os
from typing import Any

import pytest
from tests.unit.tools.process.bench import Bench, running_with

from noetl.tools.process.tool import ShellTool


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.rule("TOOL-0")
def test_a_command_gets_its_input_and_environment(bench: Bench) -> None:
    outcome = bench.shell("cat; printf $NAME", stdin={"a": 1}, env={"NAME": "x"})
    assert outcome.result["stdout"] == '{"a":1}x'


@pytest.mark.rule("OUT-3")
@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("echo a", {"exit_code": 0, "stdout": "a\n", "stderr": "", "data": None}),
        ("echo [1]", {"exit_code": 0, "stdout": "[1]\n", "stderr": "", "data": [1]}),
        ("echo b >&2", {"exit_code": 0, "stdout": "", "stderr": "b\n", "data": None}),
        ("echo a; exit 2", {"exit_code": 2, "stdout": "a\n", "stderr": "", "data": None}),
    ],
)
def test_a_result_has_both_streams_and_what_is_json(
    bench: Bench, command: str, result: dict[str, Any]
) -> None:
    assert bench.shell(command).result == result


@pytest.mark.rule("OUT-3", "OUT-4")
def test_another_exit_code_than_0_is_an_error(bench: Bench) -> None:
    error = bench.shell("exit 2").error or {}
    assert (error["kind"], error["retryable"]) == ("exit", False)


@pytest.mark.rule("OUT-2")
@pytest.mark.parametrize(
    ("command", "block"),
    [
        ("exit 2", {"exit_code": 2, "signal": None}),
        ("kill $$", {"exit_code": 143, "signal": "SIGTERM"}),
    ],
)
def test_the_block_tells_the_end(bench: Bench, command: str, block: dict[str, Any]) -> None:
    assert bench.shell(command).block == block


@pytest.mark.rule("TASK-7")
def test_a_timeout_ends_even_what_ignores_it(bench: Bench) -> None:
    command = f"trap '' TERM; while true; do sleep 9{os.getpid()}; done"
    error = bench.shell(command, total=0.3, tool=ShellTool(grace=0.1)).error or {}
    assert (error["kind"], error["retryable"]) == ("timeout", True)
    assert running_with(f"9{os.getpid()}") == []


@pytest.mark.rule("TASK-11")
def test_resources_are_limits_of_the_process(bench: Bench) -> None:
    assert bench.stdout("ulimit -v", resources={"memory": "256Mi"}) == "262144\n"


@pytest.mark.rule("EVT-4")
def test_large_output_leaves_by_reference(bench: Bench) -> None:
    outcome = bench.shell("head -c 5000000 /dev/zero | tr '\\0' x", max_inline=1_048_576)
    assert outcome.result["stdout"].size == 5_000_002


@pytest.mark.rule("KEY-2")
def test_a_command_stands_on_no_command_line(bench: Bench) -> None:
    seen = bench.stdout(
        "cat /proc/*/cmdline 2>/dev/null; true # planted-secret", tool=ShellTool(namespaces=False)
    )
    assert "planted-secret" not in seen
