"""TOOL-3 and what OUT and TASK ask of `python`."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.tools.python.bench import Bench

import noetl

PID = "import os\nresult = os.getpid()"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


@pytest.mark.rule("TOOL-3")
def test_code_runs_outside_the_process_of_the_worker(bench: Bench) -> None:
    worker = bench.result("import os\nresult = os.getppid()")
    assert worker == os.getpid()
    assert bench.result(PID) != worker


@pytest.mark.rule("TOOL-3")
def test_args_are_bound_as_names(bench: Bench) -> None:
    assert bench.result("result = [a, b]", a=1, b={"c": 2}) == [1, {"c": 2}]


@pytest.mark.rule("TOOL-3")
@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("import no_such_lib.part", "; let the task install it: libs: [no_such_lib]"),
        (
            "result = workload['a']",
            '; code sees the names in the task\'s args: args: { x: "{{ workload.x }}" }',
        ),
        ("result = execution_id", ': args: { x: "{{ execution_id }}" }'),
        ("result = rows", "name 'rows' is not defined"),
    ],
)
def test_a_name_that_is_not_there_says_how_it_gets_there(
    bench: Bench, code: str, remedy: str
) -> None:
    error = bench.run(code).error
    assert error is not None
    assert error["message"].endswith(remedy)


@pytest.mark.rule("TOOL-3")
def test_stdout_and_stderr_are_kept_as_logs(bench: Bench) -> None:
    bench.result("import sys\nprint('a')\nprint('b', file=sys.stderr)")
    assert bench.lines == [("stdout", "a"), ("stderr", "b")]


@pytest.mark.rule("TOOL-3")
def test_memory_is_limited(bench: Bench) -> None:
    outcome = bench.run("result = len(bytearray(64_000_000))", memory="32Mi")
    assert (outcome.block or {})["exception_type"] == "MemoryError"


@pytest.mark.rule("TOOL-3")
def test_a_child_is_reused_within_one_execution_only(bench: Bench) -> None:
    first, again, other = (bench.result(PID, execution=name) for name in ("e1", "e1", "e2"))
    assert first == again != other


@pytest.mark.rule("TOOL-3")
def test_names_modules_and_folder_are_fresh(bench: Bench) -> None:
    bench.result("import json\nleft = 1\njson.left = 2\nopen('left', 'w').close()")
    look = "import json, os\nresult = ['left' in globals(), hasattr(json, 'left'), os.listdir('.')]"
    assert bench.result(look) == [False, False, []]


STRAYS = {
    "an error": "1 / 0",
    "a timeout": "while True: pass",
    "a thread": "import threading\nwait = threading.Event().wait\n"
    "threading.Thread(target=wait, daemon=True).start()",
    "a process": "import subprocess\nleft = subprocess.Popen(['sleep', '600'])",
}


@pytest.mark.rule("TOOL-3")
@pytest.mark.parametrize("what", STRAYS)
def test_a_child_is_thrown_away_after(bench: Bench, what: str) -> None:
    first = bench.result(PID)
    bench.run(STRAYS[what], total=0.5)
    assert bench.result(PID) != first


@pytest.mark.rule("OUT-3")
@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("result = 1", 1),
        ("def main(a): return a + 1", 2),
        ("1 + 1", None),
    ],
)
def test_the_result_is_that_of_result_or_main(bench: Bench, code: str, result: object) -> None:
    assert bench.result(code, a=1) == result


@pytest.mark.rule("OUT-2")
def test_an_exception_has_its_block(bench: Bench) -> None:
    outcome = bench.run("x = 1\nraise ValueError('no')")
    assert outcome.error == {"kind": "python", "message": "ValueError: no", "retryable": False}
    assert outcome.block == {
        "exception_type": "ValueError",
        "traceback": "Traceback (most recent call last):\n"
        '  File "<code>", line 2, in <module>\n'
        "    raise ValueError('no')\n"
        "ValueError: no",
    }


@pytest.mark.rule("TASK-7")
def test_a_timeout_ends_the_code(bench: Bench) -> None:
    message = "the code did not end within 0.2 s"
    expected = {"kind": "timeout", "message": message, "retryable": True}
    assert bench.error("while True: pass", total=0.2) == expected


@pytest.mark.rule("TOOL-3")
def test_libs_are_wheels_unless_the_worker_builds_them(bench: Bench, tmp_path: Path) -> None:
    for place in (
        f"spy @ file://{tmp_path}/spy-1.0.tar.gz",
        "spy @ git+https://spy.example/x",
        "./",
    ):
        error = bench.error("import spy", libs=[place])
        assert (error["kind"], "the worker installs wheels only" in error["message"]) == (
            "input",
            True,
        )


TWO_STEPS = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: two, path: two }}
executor: {{ spec: {{ isolation: {isolation} }} }}
workflow:
  - step: leave
    tool: [ {{ a: {{ kind: python, code: "import json\\njson.left = 'here'" }} }} ]
    next: {{ arcs: [ {{ step: find }} ] }}
  - step: find
    tool: [ {{ b: {{ kind: python, code: "import json\\nresult = hasattr(json, 'left')" }} }} ]
"""


def written(folder: Path, isolation: str) -> Path:
    file = folder / "two.yaml"
    file.write_text(TWO_STEPS.format(isolation=isolation))
    return file


@pytest.mark.rule("TOOL-5", "DOC-4")
@pytest.mark.parametrize(("isolation", "found"), [("process", False), ("shared", True)])
def test_a_playbook_says_whether_its_tasks_share_what_is_loaded(
    tmp_path: Path, isolation: str, found: bool
) -> None:
    result = noetl.run(written(tmp_path, isolation), home=tmp_path / "home")
    assert result.result is found


@pytest.mark.rule("TOOL-5")
def test_another_isolation_is_a_finding(tmp_path: Path) -> None:
    with pytest.raises(noetl.PlaybookRejected) as rejected:
        noetl.run(written(tmp_path, "none"), home=tmp_path / "home")
    assert [finding.path for finding in rejected.value.findings] == ["executor.spec.isolation"]
