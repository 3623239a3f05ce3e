"""`noetl run` as scripts and people use it."""

import json
import os
import pty
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.system.program import HELLO, NOETL, Answer, noetl
from tests.system.run_playbooks import BRANCHES, FAULTS, HEAD, LIMITED


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def run(file: Path, *words: str, home: Path, stdin: bytes = b"") -> Answer:
    return noetl("run", file, *words, stdin=stdin, NOETL_HOME=str(home))


def playbook(folder: Path, text: str) -> Path:
    file = folder / "playbook.yaml"
    file.write_text(text)
    return file


def shown_object(answer: Answer) -> dict[str, Any]:
    [told] = answer.objects()
    return told


def test_the_first_example_greets(home: Path) -> None:
    answer = run(HELLO, home=home)
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0].startswith("examples/hello: execution ")
    assert lines[1:4] == ["start: done", "good_morning: done", "done: done"]
    assert lines[4] == "  ctx.message = Good morning, world!"
    assert lines[-1].startswith("completed in ")


def test_json_is_one_object_and_the_rest_goes_to_stderr(home: Path) -> None:
    answer = run(HELLO, "--json", "--set", "hour=20", "--set", "name=Ada", home=home)
    assert answer.code == 0
    told = shown_object(answer)
    assert list(told) == [
        "execution_id",
        "status",
        "ctx",
        "result",
        "error",
        "steps",
        "duration_ms",
        "errors_passed",
        "failures_handled",
    ]
    assert told["status"] == "completed"
    assert told["ctx"] == {"message": "Good evening, Ada. It is late."}
    assert (told["result"], told["error"]) == (None, None)
    assert told["steps"] == [
        {"step": name, "runs": 1, "failed": 0, "status": "done"}
        for name in ("start", "good_evening", "done")
    ]
    assert told["duration_ms"] >= 0
    assert told["execution_id"] in answer.err.splitlines()[-1]


def test_results_of_several_leaves_stand_by_their_steps(tmp_path: Path, home: Path) -> None:
    answer = run(playbook(tmp_path, BRANCHES), "--json", home=home)
    told = shown_object(answer)
    assert told["ctx"] == {"total": 6}
    assert told["result"] == {"left": {"said": "world"}, "right": [None, None, None]}
    assert "left | hello world" in answer.err.splitlines()


def test_what_tasks_print_goes_to_stderr(tmp_path: Path, home: Path) -> None:
    answer = run(playbook(tmp_path, BRANCHES), "--set", "name=Bob", home=home)
    assert answer.code == 0
    assert answer.err == "left | hello Bob\n"
    assert "right: loop of 3 iterations, parallel" in answer.out
    assert "right: 3 of 3 done" in answer.out


@pytest.mark.rule("DOC-3")
@pytest.mark.parametrize(
    ("words", "stdin", "name"),
    [
        (["--set", "name=plain text"], b"", "plain text"),
        (["--set", 'name={"a": [1]}'], b"", {"a": [1]}),
        (["--set", "name.first=1", "--set", "name.last=true"], b"", {"first": 1, "last": True}),
        (["--payload", "-"], b'{"name": "json"}', "json"),
        (["--payload", "-"], b"name: yaml\nother: 1\n", "yaml"),
        (["--payload", "-", "--set", "name=set wins"], b'{"name": "json"}', "set wins"),
        (["--set", "name={{ 7 * 7 }}"], b"", "{{ 7 * 7 }}"),
    ],
)
def test_the_payload(
    tmp_path: Path, home: Path, words: list[str], stdin: bytes, name: object
) -> None:
    answer = run(playbook(tmp_path, BRANCHES), "--json", *words, home=home, stdin=stdin)
    assert shown_object(answer)["result"]["left"] == {"said": name}


def test_a_playbook_from_standard_input(home: Path) -> None:
    answer = noetl("run", "-", stdin=HELLO.read_bytes(), NOETL_HOME=str(home))
    assert answer.code == 0


def test_an_invalid_playbook_is_exit_2_with_the_findings(tmp_path: Path, home: Path) -> None:
    file = playbook(tmp_path, HEAD + "workflow: [{step: a, tool: [{x: {kind: noopp}}]}]\n")
    answer = run(file, home=home)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error[unknown-kind]: ")
    told = shown_object(run(file, "--json", home=home))
    assert told == shown_object(noetl("validate", "--json", file))
    assert not home.exists(), "nothing was run, nothing was made"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.yaml"], "cannot read 'missing.yaml'"),
        ([str(HELLO), "--set", "novalue"], "--set expects NAME=VALUE, got 'novalue'"),
        ([str(HELLO), "--set", "a..b=1"], "--set expects NAME=VALUE, got 'a..b=1'"),
        ([str(HELLO), "--payload", "missing.json"], "cannot read 'missing.json'"),
        (["-", "--payload", "-"], "cannot both be standard input"),
        ([str(HELLO), "--payload", "list.json"], "expects a mapping in 'list.json', got list"),
        ([str(HELLO), "--payload", "torn.json"], "--payload 'torn.json', line"),
        ([], "Missing argument 'FILE'"),
    ],
)
def test_usage_errors_are_exit_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("list.json").write_text("[1]")
    Path("torn.json").write_text('{"a": ')
    for more in ([], ["--json"]):
        answer = noetl("run", *words, *more, NOETL_HOME=str(tmp_path / "home"))
        assert answer.code == 3
        assert said in answer.err
        if more:
            told = shown_object(answer)
            assert list(told) == ["status", "error"]
            assert said in told["error"]


@pytest.mark.parametrize("name", FAULTS)
def test_bad_input_fails_honestly(tmp_path: Path, home: Path, name: str) -> None:
    kind, words, workflow = FAULTS[name]
    file = playbook(tmp_path, HEAD + LIMITED + workflow)
    answer = run(file, "--json", home=home)
    assert answer.code == 1
    told = shown_object(answer)
    assert (told["status"], told["error"]["kind"]) == ("failed", kind)
    assert words in told["error"]["message"]
    last = answer.err.splitlines()[-1]
    assert last.startswith("failed after ")
    assert last.endswith(f"see: noetl explain {told['execution_id']}")
    proved = noetl("replay", told["execution_id"], "--verify", NOETL_HOME=str(home))
    assert proved.code == 0, proved.out


def test_a_read_only_home_is_exit_3(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(stat.S_IRUSR | stat.S_IXUSR)
    tmp_path.chmod(stat.S_IRWXU | stat.S_IRWXO)
    words = [NOETL, "run", "--json", str(HELLO)]
    if os.geteuid() == 0:  # root may write everywhere: be somebody else
        words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *words]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "NOETL_HOME": str(home)},
    )
    assert done.returncode == 3
    assert json.loads(done.stdout)["status"] == "error"
    assert str(home) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_home_that_is_a_file_is_exit_3(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer = run(HELLO, home=tmp_path / "file" / "home")
    assert answer.code == 3
    assert "set NOETL_HOME to a folder that can be written" in answer.err


@pytest.mark.rule("RES-1")
def test_large_results_are_printed_up_to_a_mebibyte(tmp_path: Path, home: Path) -> None:
    text = """
executor: {kind: local, spec: {policy: {limits: {max_payload_bytes: 2000}}}}
workload: {length: 10}
workflow:
  - step: start
    tool:
      - make:
          kind: python
          args: {length: "{{ workload.length }}"}
          code: "result = 'x' * length"
"""
    file = playbook(tmp_path, HEAD + text)
    for length, printed in ((100_000, True), (2_000_000, False)):
        told = shown_object(run(file, "--json", "--set", f"length={length}", home=home))
        if printed:
            assert told["result"] == "x" * length
        else:
            assert told["result"]["$ref"]["size"] == length + 2


def test_a_terminal_gets_a_tree(tmp_path: Path, home: Path) -> None:
    here, there = pty.openpty()
    done = subprocess.run(
        [NOETL, "run", str(playbook(tmp_path, BRANCHES))],
        stdout=there,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=600,
        env={**os.environ, "NOETL_HOME": str(home), "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(there)
    shown = b""
    while piece := read_some(here):
        shown += piece
    os.close(here)
    assert done.returncode == 0
    text = shown.decode()
    assert "tests/sample" in text
    assert "3/3" in text
    assert "└─" in text


def read_some(here: int) -> bytes:
    try:
        return os.read(here, 65536)
    except OSError:  # the other side is closed and all is read
        return b""
