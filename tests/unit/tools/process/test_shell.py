"""Commands of a shell: their streams, their exit, their surroundings."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.unit.tools.process.bench import Bench

from noetl.kinds.code import ShellInputs


@pytest.mark.parametrize(
    ("command", "stdout", "stderr", "parsed"),
    [
        ("echo one; echo two >&2", "one\n", "two\n", None),
        ("true", "", "", None),
        ("echo '{\"a\": [1, 2.5, null]}'", '{"a": [1, 2.5, null]}\n', "", {"a": [1, 2.5, None]}),
        ("echo 42", "42\n", "", 42),
        ("echo '{\"a\":'", '{"a":\n', "", None),
        ("echo '{}' >&2", "", "{}\n", None),
        ("printf 'a\\r\\nb'", "a\r\nb", "", None),
        ("printf '\\357\\273\\277[1]'", "[1]", "", [1]),
    ],
)
def test_a_result(bench: Bench, command: str, stdout: str, stderr: str, parsed: object) -> None:
    outcome = bench.shell(command)

    assert outcome.result == {"exit_code": 0, "stdout": stdout, "stderr": stderr, "data": parsed}
    assert outcome.block == {"exit_code": 0, "signal": None}


@pytest.mark.parametrize(
    ("command", "code", "name", "message", "retryable"),
    [
        ("exit 3", 3, None, "the command ended with exit code 3", False),
        (
            "echo a >&2; echo 'no such table' >&2; echo >&2; exit 1",
            1,
            None,
            "the command ended with exit code 1: no such table",
            False,
        ),
        ("exit 75", 75, None, "the command ended with exit code 75", True),
        (
            "kill -9 $$",
            137,
            "SIGKILL",
            "the command was killed by signal 9 (SIGKILL)",
            True,
        ),
        (
            "kill -SEGV $$",
            139,
            "SIGSEGV",
            "the command was killed by signal 11 (SIGSEGV)",
            False,
        ),
        (
            f"kill -{signal.SIGRTMIN + 1} $$",
            128 + signal.SIGRTMIN + 1,
            f"signal {signal.SIGRTMIN + 1}",
            f"the command was killed by signal {signal.SIGRTMIN + 1}"
            f" (signal {signal.SIGRTMIN + 1})",
            False,
        ),
    ],
)
def test_an_end_that_is_an_error(
    bench: Bench, command: str, code: int, name: str | None, message: str, retryable: bool
) -> None:
    outcome = bench.shell(f"echo before; {command}")

    assert outcome.error == {"kind": "exit", "message": message, "retryable": retryable}
    assert outcome.block == {"exit_code": code, "signal": name}
    assert (outcome.result["exit_code"], outcome.result["stdout"]) == (code, "before\n")


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ("plain text", "plain text"),
        ({"a": [1, "ü"]}, '{"a":[1,"ü"]}'),
        (0, "0"),
        ("", ""),
        (None, ""),
    ],
)
def test_standard_input(bench: Bench, given: Any, seen: str) -> None:
    assert bench.stdout("cat", stdin=given) == seen


def test_much_input_that_is_read_slowly_and_input_that_nobody_reads(bench: Bench) -> None:
    text = "x" * 3_000_000
    assert bench.stdout("wc -c", stdin=text).strip() == "3000000"
    assert bench.stdout("exec <&-; echo done", stdin=text) == "done\n"


def test_lines_are_kept_while_they_come(bench: Bench) -> None:
    bench.shell("echo a; echo b >&2; printf c")
    assert sorted(bench.place.lines) == [("stderr", "b"), ("stdout", "a"), ("stdout", "c")]


def test_the_environment_is_what_the_task_names(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WORKER_TOKEN", "planted")
    env = {"NAME": "ü b", "COUNT": 3, "FLAG": True}
    lines = bench.stdout("env", env=env, folder=str(tmp_path)).splitlines()
    seen = dict(line.split("=", 1) for line in lines)

    assert {name: seen[name] for name in env} == {"NAME": "ü b", "COUNT": "3", "FLAG": "true"}
    expected = {*env, "PATH", "LANG", "HOME", "TMPDIR", "PWD", "NOETL_FOLDER"}
    assert set(seen) - {"OLDPWD", "SHLVL", "_"} == expected
    assert seen["NOETL_FOLDER"] == str(tmp_path)
    assert seen["HOME"] == seen["TMPDIR"] == seen["PWD"]


def test_a_task_may_set_its_path(bench: Bench) -> None:
    assert bench.stdout("echo $PATH", env={"PATH": "/opt/bin"}) == "/opt/bin\n"


def test_the_folder_is_empty_private_and_gone_afterwards(bench: Bench) -> None:
    printed = bench.stdout("ls -A; touch left; stat -c %a . left; pwd")
    folder_mode, file_mode, folder = printed.split()
    assert (folder_mode, file_mode) == ("700", "600")
    assert not Path(folder).parent.exists()


def test_the_command_stands_on_no_command_line(bench: Bench) -> None:
    """Any user of the machine may read command lines: what a template put there stays out."""
    seen = bench.stdout("cat /proc/*/cmdline | tr '\\0' '\\n' # planted-value")
    assert "planted-value" not in seen
    assert ".command" in seen


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            ShellInputs(command="true", env={"A=B": "1"}),
            "env has the name 'A=B'; expected letters, digits and '_'",
        ),
        (
            ShellInputs(command="true", env={"A": "b\0c"}),
            "arguments and environment cannot hold the character U+0000",
        ),
        (ShellInputs(command="echo \ud800"), "the command cannot be written as UTF-8"),
        (ShellInputs(command="cat", stdin="\ud800"), "stdin cannot be written"),
    ],
)
def test_inputs_that_cannot_be(bench: Bench, inputs: ShellInputs, message: str) -> None:
    error = bench.error(inputs)
    assert (error["kind"], error["retryable"]) == ("input", False)
    assert error["message"].startswith(message)


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ({"memory": "much"}, "spec.resources.memory is 'much'; expected bytes"),
        ({"cpu": 0}, "spec.resources.cpu is 0; expected a number above 0"),
        ({"cpu": "all"}, "spec.resources.cpu is 'all'; expected a number above 0"),
        ({"cpu": True}, "spec.resources.cpu is True; expected a number above 0"),
        ({"network": "off"}, "spec.resources.network is 'off'; expected host or none"),
        ({"disk": 1}, "spec.resources has no 'disk'; it has cpu, memory, network"),
    ],
)
def test_resources_that_cannot_be(bench: Bench, resources: dict[str, Any], message: str) -> None:
    error = bench.error(ShellInputs(command="true"), resources=resources)
    assert error["kind"] == "input"
    assert error["message"].startswith(message)


def test_resources_bound_the_command(bench: Bench) -> None:
    limits = "ulimit -v; ulimit -c; ulimit -n; nproc"
    seen = bench.stdout(limits, resources={"memory": "512Mi", "cpu": 1}).split()
    assert seen == ["524288", "0", "1024", "1"]
    assert bench.stdout("ulimit -v; nproc").split() == [
        "unlimited",
        str(len(os.sched_getaffinity(0))),
    ]
