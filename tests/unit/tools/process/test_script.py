"""Scripts: files and texts, what runs them, and what they are given."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.tools.process.bench import Bench

from noetl.kinds.code import ScriptInputs
from noetl.masking import KNOWN

PRINT_ARGUMENTS = "import sys, json\nprint(json.dumps(sys.argv[1:]))"


def script(**given: Any) -> ScriptInputs:
    return ScriptInputs(**given)


def stdout(bench: Bench, inputs: ScriptInputs, **more: Any) -> str:
    outcome = bench.run(inputs, **more)
    assert (outcome.status, outcome.error) == ("ok", None)
    return str(outcome.result["stdout"])


@pytest.mark.parametrize(
    ("text", "interpreter", "printed"),
    [
        ("#!/bin/sh\necho by its line", None, "by its line\n"),
        ("#!/usr/bin/env python3\nprint('by env')", None, "by env\n"),
        ("#! /bin/sh -e\nfalse || echo $-", None, "e\n"),
        ("echo $0 | grep -c script", "sh", "1\n"),
        ("print('by name')", "python3", "by name\n"),
        ("print('by words')", "python3 -u", "by words\n"),
        ("import sys; print(sys.flags.optimize)", ["python3", "-O"], "1\n"),
        ("echo by path", "/bin/sh", "by path\n"),
        ("BEGIN { print 6 * 7 }", "awk -f", "42\n"),
    ],
)
def test_what_runs_a_text(bench: Bench, text: str, interpreter: Any, printed: str) -> None:
    assert stdout(bench, script(code=text, interpreter=interpreter)) == printed


def test_a_file_beside_the_playbook(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "hello.sh").write_text('echo "$1 from $0"')
    inputs = script(path="scripts/hello.sh", interpreter="sh", args=["hello"])
    printed = stdout(bench, inputs, folder=str(tmp_path))
    assert printed == f"hello from {tmp_path}/scripts/hello.sh\n"


def test_a_file_that_is_a_program(bench: Bench, tmp_path: Path) -> None:
    program = tmp_path / "printf"
    program.write_bytes(Path("/usr/bin/printf").read_bytes())
    program.chmod(0o755)
    assert stdout(bench, script(path="printf", args=["%s", "x"]), folder=str(tmp_path)) == "x"


def test_an_interpreter_beside_the_playbook(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "twice").write_text('#!/bin/sh\nsh "$1"; sh "$1"')
    (tmp_path / "twice").chmod(0o755)
    inputs = script(code="echo again", interpreter="./twice")
    assert stdout(bench, inputs, folder=str(tmp_path)) == "again\nagain\n"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], []),
        (["a b", 1, 2.5, True, None, {"x": [1]}], ["a b", "1", "2.5", "true", "null", '{"x":[1]}']),
        (["$HOME", "; rm -rf x", "*"], ["$HOME", "; rm -rf x", "*"]),
        ({"name": "x y", "count": 3}, ["--name", "x y", "--count", "3"]),
        ({"verbose": True, "quiet": False, "none": None}, ["--verbose"]),
    ],
)
def test_arguments(bench: Bench, args: Any, words: list[str]) -> None:
    inputs = script(code=PRINT_ARGUMENTS, interpreter="python3", args=args)
    assert bench.run(inputs).result["data"] == words


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({}, "input", "script needs either 'path' or 'code'"),
        ({"path": "a", "code": "b"}, "input", "script needs either 'path' or 'code'"),
        ({"path": "missing.sh"}, "not_found", "no script 'missing.sh' in "),
        ({"path": "."}, "not_found", "no script '.' in "),
        ({"path": "../x.sh"}, "input", "path '../x.sh' leaves the playbook's folder"),
        ({"code": "echo"}, "input", "'{script}' does not say what runs it"),
        (
            {"code": "x", "interpreter": "no-such-language"},
            "not_found",
            "interpreter 'no-such-language' is not installed: looked in /usr/local/bin:",
        ),
        (
            {"code": "#!/no/such/program\n"},
            "not_found",
            "interpreter '/no/such/program' is not a program that can be run",
        ),
        ({"code": "x", "interpreter": "/tmp"}, "not_found", "interpreter '/tmp' is not a program"),
        ({"code": "x", "interpreter": "'"}, "input", "interpreter ''' cannot be read: "),
        ({"code": "x", "interpreter": []}, "input", "interpreter is empty"),
        ({"code": "x", "interpreter": " "}, "input", "interpreter is empty"),
        ({"code": "#!\n"}, "input", "interpreter is empty"),
    ],
)
def test_scripts_that_cannot_be_run(
    bench: Bench, tmp_path: Path, given: dict[str, Any], kind: str, message: str
) -> None:
    outcome = bench.run(script(**given), folder=str(tmp_path))

    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == (kind, False)
    start, _, rest = message.partition("{script}")
    assert outcome.error["message"].startswith(start)
    assert rest in outcome.error["message"]
    assert outcome.block == {"exit_code": None, "signal": None}


@pytest.mark.rule("KEY-2")
def test_a_secret_comes_by_environment_and_never_on_a_command_line(bench: Bench) -> None:
    KNOWN.add("planted-value")
    try:
        told = bench.error(script(code="#!/bin/sh\n", args=["--token=planted-value"]))
        by_env = bench.run(script(code="#!/bin/sh\nprintf $T", env={"T": "planted-value"}))
    finally:
        KNOWN.forget("planted-value")
    assert told["kind"] == "input"
    assert "pass it in 'env' or 'stdin'" in told["message"]
    assert "planted-value" not in told["message"]
    assert by_env.result["stdout"] == "planted-value"


@pytest.mark.rule("KEY-2")
def test_an_interpreter_is_no_place_for_a_secret_that_splitting_would_hide(bench: Bench) -> None:
    KNOWN.add('planted "value"')
    told = bench.error(script(code="x", interpreter='sh planted "value"'))
    assert told["kind"] == "input"
    assert "planted" not in told["message"]


def test_a_program_that_the_kernel_refuses(bench: Bench, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF\0nonsense")
    program.chmod(0o755)
    error = bench.error(script(path="program"), folder=str(tmp_path))
    assert error["kind"] == "not_found"
    assert error["message"] == f"'{program}' cannot be run: Exec format error"
