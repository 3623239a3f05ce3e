"""Every command that asks, asked of a server and of the home: the same words, the same codes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.program import HELLO
from tests.system.running import running
from tests.system.servers import BLOCKED, FAILING, Node, node


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One server with one worker for all of these tests."""
    with node(tmp_path_factory.mktemp("node"), workers=1) as started:
        assert started.there("register", HELLO).code == 0
        for text in (BLOCKED, FAILING):
            assert started.there("register", "-", stdin=text).code == 0
        yield started


def begun(up: Node, path: str, *words: str) -> str:
    [told] = up.there("execute", path, "--json", *words).objects()
    return str(told["execution_id"])


@pytest.fixture(scope="module")
def failed(up: Node) -> str:
    """An execution that failed."""
    answer = up.there("execute", "tests/failing", "--wait", "--json")
    assert answer.code == 1
    assert "start | on my way" in answer.err
    return str(answer.objects()[0]["execution_id"])


@pytest.mark.rule("CLI-1")
@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["events"],
        ["events", "--follow"],
        ["events", "--name", "task.*"],
        ["logs"],
        ["logs", "--step", "nowhere"],
        ["logs", "--follow"],
        ["explain"],
        ["replay"],
        ["replay", "--verify"],
        ["cancel"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["words", "json"])
def test_a_server_answers_as_the_home_does(
    up: Node, failed: str, words: list[str], form: list[str]
) -> None:
    command, *options = words
    near = up.here(command, failed, *options, *form)
    far = up.there(command, failed, *options, *form)
    assert far == near
    assert near.out or words[1:2] == ["--step"]


@pytest.mark.rule("CLI-1")
@pytest.mark.parametrize(
    "words",
    [["status"], ["explain"], ["events"], ["logs"], ["replay"], ["export", "--format", "jsonl"]],
    ids=lambda words: words[0],
)
def test_the_last_one_and_the_beginning_of_an_id(up: Node, failed: str, words: list[str]) -> None:
    command, *options = words
    whole = up.there(command, failed, *options)
    assert up.there(command, failed[:-2], *options) == whole
    assert up.here(command, failed[:-2], *options) == whole
    last = up.there("list", "--json", "--limit", "1").objects()[0]["execution_id"]
    assert up.there(command, "last", *options) == up.there(command, last, *options)


def test_what_a_task_prints_is_heard_while_it_runs(up: Node) -> None:
    text = BLOCKED.replace(b"sleep 600", b"echo still at it; sleep 600").replace(
        b"tests/blocked", b"tests/printing"
    )
    assert up.there("register", "-", stdin=text).code == 0
    execution_id = begun(up, "tests/printing")
    words = ("logs", execution_id, "--follow", "--server", up.url)
    with running(*words, home=up.home) as following:
        following.wait_for("start | still at it")
        assert up.there("cancel", execution_id).code == 0
        assert following.end() == 0


@pytest.mark.rule("CLI-2")
def test_a_server_says_what_it_uses(up: Node) -> None:
    said = up.here("server", "status")
    assert f"database: SQLite in {up.home}" in said.out
    assert "queue: none" in said.out


@pytest.mark.rule("CLI-1")
@pytest.mark.parametrize(
    "words",
    [
        ["list", "--status", "failed"],
        ["list", "--path", "tests/f*", "--json"],
        ["list", "--path", "tests/failing", "--limit", "1"],
        ["list", "--path", "no/such"],
        ["catalog"],
        ["catalog", "--json"],
        ["catalog", "tests/failing"],
        ["catalog", "tests/failing", "--json"],
        ["catalog", "tests/failing", "--versions"],
        ["credential", "list"],
    ],
    ids=" ".join,
)
def test_lists_are_the_same_here_and_there(up: Node, failed: str, words: list[str]) -> None:
    assert failed
    assert up.there(*words) == up.here(*words)


@pytest.mark.parametrize(
    "words",
    [
        ["status", "nobody"],
        ["events", "nobody"],
        ["logs", "nobody"],
        ["explain", "nobody"],
        ["replay", "nobody"],
        ["cancel", "nobody"],
        ["pause", "nobody"],
        ["resume", "nobody"],
        ["execute", "no/such"],
        ["execute", "tests/failing", "--version", "9"],
        ["catalog", "no/such"],
        ["credential", "rm", "nobody"],
    ],
    ids=" ".join,
)
def test_what_is_not_there_is_exit_3_in_both(up: Node, words: list[str]) -> None:
    for answer in (up.here(*words), up.there(*words)):
        assert (answer.code, answer.out) == (3, "")
        assert answer.err.startswith("error: ")
        assert words[-1] in answer.err
        assert "GET /api" not in answer.err


@pytest.mark.rule("CLI-1")
def test_execute_and_wait_says_what_run_says(up: Node) -> None:
    near = up.here("run", HELLO, "--set", "name=Ada")
    far = up.there("execute", "examples/hello", "--set", "name=Ada", "--wait")
    assert (far.code, far.err) == (near.code, near.err) == (0, "")
    assert lasting(far.out) == lasting(near.out)
    assert far.out.splitlines()[0].startswith("examples/hello: execution ")
    one, other = (
        answer.objects()[0]
        for answer in (
            up.here("run", HELLO, "--json"),
            up.there("execute", "examples/hello", "--wait", "--json"),
        )
    )
    changing = ("execution_id", "duration_ms")
    assert {k: v for k, v in one.items() if k not in changing} == {
        k: v for k, v in other.items() if k not in changing
    }


def lasting(text: str) -> list[str]:
    """What does not change from run to run."""
    lines = [re.sub(r"execution \w+| in [\d.]+ m?s", "", line) for line in text.splitlines()]
    return [line for line in lines if not line.endswith(": started")]


def test_one_key_starts_one_execution(up: Node) -> None:
    first, second = (begun(up, "examples/hello", "--key", "order-1") for _ in range(2))
    assert first == second
    other = up.there("execute", "examples/hello", "--key", "order-1", "--set", "name=Bob")
    assert other.code == 3
    assert "idempotency key came before" in other.err


@pytest.mark.rule("CLI-1")
def test_an_execution_is_followed_paused_resumed_and_cancelled(up: Node) -> None:
    execution_id = begun(up, "tests/blocked")
    with running("events", execution_id, "--follow", "--server", up.url, home=up.home) as follower:
        follower.wait_for("task.started")
        assert up.there("pause", execution_id).code == 0
        follower.wait_for("execution.paused")
        assert "status    paused" in up.there("status", execution_id).out
        resumed = up.there("resume", execution_id)
        assert (resumed.code, resumed.out) == (0, "the server was told to continue\n")
        follower.wait_for("execution.resumed")
        cancelled = up.there("cancel", execution_id, "--reason", "enough")
        assert (cancelled.code, cancelled.out) == (0, f"execution {execution_id}: cancelled\n")
        follower.wait_for("playbook.processed")
        assert follower.end() == 0
    again = up.there("cancel", execution_id, "--json")
    assert (again.code, json.loads(again.out)["status"]) == (0, "cancelled")
    for words, code in ((["resume"], 1), (["pause"], 1), (["cancel"], 0), (["signal", "x"], 3)):
        late = up.there(words[0], execution_id, *words[1:])
        said = f"execution {execution_id} was cancelled at 2"
        assert (late.code, said in late.out + late.err) == (code, True), late
        assert f"go on with what was stopped: noetl restart {execution_id}" in late.out + late.err
    assert "it was cancelled on request: enough" in up.there("explain", execution_id).out


def test_the_home_may_order_what_the_server_runs(up: Node) -> None:
    execution_id = begun(up, "tests/blocked")
    assert up.here("pause", execution_id).out.startswith(f"execution {execution_id}: paused")
    assert "was told to continue" in up.here("resume", execution_id).out
    assert up.here("cancel", execution_id).code == 0


def test_a_text_is_registered_once_and_an_invalid_one_not_at_all(up: Node, tmp_path: Path) -> None:
    text = FAILING.replace(b"tests/failing", b"tests/twice")
    for number, expected in ((1, "registered"), (1, "unchanged"), (2, "registered")):
        body = text if number == 1 else text.replace(b"my way", b"our way")
        answer = up.there("register", "-", stdin=body)
        assert answer == (0, f"<stdin>: {expected}, tests/twice version {number}\n", "")
    wrong = tmp_path / "wrong.yaml"
    wrong.write_bytes(text.replace(b"kind: shell", b"kind: shll"))
    for ask in (up.here, up.there):
        refused = ask("register", wrong, tmp_path / "missing.yaml", HELLO)
        assert refused.code == 3
        assert "error[unknown-kind]" in refused.err
        assert "there is no such file" in refused.err
        assert refused.out.endswith("unchanged, examples/hello version 1\n")
        told = ask("register", wrong, "--json")
        assert told.code == 2
        assert told.objects()[0]["findings"][0]["code"] == "unknown-kind"


@pytest.mark.rule("CLI-1", "VAL-5")
def test_warnings_are_told_before_a_server_begins(up: Node) -> None:
    text = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: unsure, path: tests/unsure}
workflow:
  - step: start
    tool:
      - one: {kind: noop, spec: {policy: {rules: [{when: "{{ workload.go }}", then: {do: break}}]}}}
"""
    told = up.there("register", "-", stdin=text.encode())
    assert (told.code, told.err.count("warning[unbound-name]")) == (0, 1)
    asked = up.there("execute", "tests/unsure", "--wait")
    assert (asked.code, asked.err.count("warning[unbound-name]")) == (0, 1)
    for quiet in (["--quiet"], ["--set", "go=true"]):
        assert "warning" not in up.there("execute", "tests/unsure", "--wait", *quiet).err
    strict = up.there("execute", "tests/unsure", "--strict")
    assert (strict.code, strict.out) == (2, "")
    assert "tests/unsure@1: refused by --strict, 1 warning" in strict.err


def test_credentials_go_to_the_server_and_never_come_back(up: Node) -> None:
    added = up.there("credential", "add", "api", "--kind", "bearer", "--stdin", stdin=b"s3cr3t-9")
    assert added.code == 0
    assert up.here("credential", "list", "--json").objects()[0]["name"] == "api"
    assert "s3cr3t-9" not in up.there("credential", "list", "--json").out
    assert "a server shows no fields" in up.there("credential", "show", "api").err
    assert "rotate it where the server runs" in up.there("credential", "rotate").err
    assert up.there("credential", "rm", "api").out == "removed 'api'\n"


def test_the_doctor_looks_at_the_server(up: Node) -> None:
    told = up.there("doctor", "--json")
    assert told.code == 0, told
    [found] = told.objects()
    checks = {check["name"]: check for check in found["checks"]}
    assert checks["server"]["state"] == "ok"
    assert up.url in checks["server"]["says"]
    origins = {row["setting"]: row["origin"] for row in found["settings"]}
    assert (origins["server"], origins["port"]) == ("NOETL_SERVER", "default")
