"""Servers and workers as processes: started, looked at, stopped, and what is refused (CLI-2)."""

import json
import os
import signal
from pathlib import Path

import pytest
from tests.support.asking import asking
from tests.support.fleet import free_port
from tests.support.processes import Running
from tests.system.program import HELLO
from tests.system.servers import Node, node

from noetl.node.pid_file import PidFile


@pytest.mark.rule("CLI-2")
def test_a_server_is_started_looked_at_and_stopped(tmp_path: Path) -> None:
    here = Node(tmp_path)
    assert here.status()["running"] is False
    assert here.here("server", "status").code == 1
    with node(tmp_path, workers=0) as up:
        told = up.status()
        assert (told["running"], told["ready"], told["url"]) == (True, True, up.url)
        os.kill(told["pid"], 0)
        said = up.here("server", "status")
        assert (said.code, said.err) == (0, "")
        assert said.out.startswith(f"running at {up.url}, process {told['pid']}, since ")
        assert f"the server is ready at {up.url}" in up.here("server", "logs").out
        stopped = up.here("server", "stop")
        assert stopped == (0, f"the server has stopped (process {told['pid']})\n", "")
        assert up.status()["running"] is False
        assert up.here("server", "stop").out == f"no server runs on {tmp_path}\n"
        assert [file.name for file in (tmp_path / "run").glob("*.pid")] == []


@pytest.mark.rule("CLI-2")
def test_a_second_server_on_the_home_is_refused(tmp_path: Path) -> None:
    with node(tmp_path, workers=0) as up:
        pid = up.status()["pid"]
        for words in ([], ["--foreground"]):
            again = up.here("server", "start", "--port", "0", *words)
            assert again.code == 3
            assert f"a server runs on this home already (process {pid} at {up.url})" in again.err
            assert "noetl server stop" in again.err
        assert up.status()["pid"] == pid


def test_a_server_that_was_killed_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    with node(tmp_path, workers=1) as up:
        first = up.status()["pid"]
        [worker] = workers_of(up)
        os.kill(first, signal.SIGKILL)
        # Its own worker hangs on it, and ends.
        wait_gone(tmp_path, worker["pid"])
        assert up.status()["running"] is False
        assert up.start()["pid"] != first


def test_a_worker_that_waits_for_a_server_can_be_stopped(tmp_path: Path) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    waits = Running(tmp_path / "home", "worker", "start", "--foreground", NOETL_SERVER=nobody)
    for _ in asking():
        if "waiting for one" in waits.out + waits.err:
            break
        assert waits.process.is_alive()
    waits.tell(signal.SIGTERM)
    assert waits.ended() == 0


def workers_of(up: Node) -> list[dict[str, object]]:
    """Those that are there; they come after the server is ready."""
    for _ in asking():
        if found := up.here("worker", "status", "--json").objects():
            break
        assert up.status()["running"]
    return found


def wait_gone(home: Path, pid: object) -> None:
    file = PidFile(home, "worker-default-1")
    for _ in asking():
        if (running := file.running()) is None:
            return
        assert running.pid == pid


@pytest.mark.parametrize(
    ("words", "environment", "said"),
    [
        (["--host", "0.0.0.0", "--open"], {}, "which others can reach, and auth is off"),
        (["--port", "99999"], {}, "--port must be a port, 0 to 65535, got '99999'"),
        (["--db", "mysql://x/y"], {}, "--db must be postgresql://"),
        ([], {"NOETL_QUEUE": "nowhere"}, "NOETL_QUEUE must be nats://HOST:PORT, got 'nowhere'"),
        (["--worker", "-1"], {}, "Invalid value for '--worker'"),
    ],
)
@pytest.mark.parametrize("where", [[], ["--foreground"]], ids=["background", "foreground"])
def test_what_a_server_cannot_start_with_is_said(
    tmp_path: Path, words: list[str], environment: dict[str, str], said: str, where: list[str]
) -> None:
    answer = Node(tmp_path).here("server", "start", *where, *words, stdin=b"", **environment)
    assert (answer.code, answer.out) == (3, "")
    assert said in answer.err
    assert Node(tmp_path).status()["running"] is False


def test_a_database_that_is_away_is_waited_for(tmp_path: Path) -> None:
    here = Node(tmp_path)
    away = "postgresql://noetl:hunter22@127.0.0.1:1/noetl"
    answer = here.here("server", "start", "--port", "0", "--db", away, "--timeout", "2")
    try:
        assert answer.code == 3
        assert "the server is not ready after 2 s; it continues in the background" in answer.err
        assert here.status()["running"] is True
        assert here.status()["ready"] is False
        logged = here.here("server", "logs").out
        assert "127.0.0.1:1" in logged
        assert "hunter22" not in logged + answer.err
    finally:
        assert here.here("server", "stop").code == 0


@pytest.mark.rule("CLI-2", "WRK-2")
def test_workers_are_started_looked_at_and_stopped(tmp_path: Path) -> None:
    with node(tmp_path, workers=0) as up:
        assert up.here("worker", "status").code == 1
        assert up.there("register", HELLO).code == 0
        started = up.here("worker", "start", "--count", "2", "--concurrency", "3", "--json")
        assert started.code == 0, started
        pids = {one["pid"] for one in started.objects()}
        assert {one["pid"] for one in up.here("worker", "status", "--json").objects()} == pids
        done = up.there("execute", "examples/hello", "--wait", "--json")
        assert done.objects()[0]["status"] == "completed"
        assert slots_of(up, workers=2) == {"default": 6}
        assert "takes up to 3 parts of pool 'default'" in up.here("worker", "logs").out
        assert up.here("worker", "stop").out == "2 workers stopped\n"
        assert up.here("worker", "status").code == 1


def slots_of(up: Node, *, workers: int) -> dict[str, int]:
    """The slots of each pool, once the server's list has so many workers."""
    for _ in asking():
        [runtime] = up.there("server", "status", "--json").objects()
        if len(runtime["workers"]) == workers:
            break
    return {pool["name"]: pool["slots"] for pool in runtime["pools"]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "a worker needs a server to work for: --server URL, --queue URL, or a server on"),
        (["--queue", "nats://x:1", "--server", "http://y"], "--queue and --server exclude"),
        (["--server", "y"], "--server must be http://HOST:PORT, got 'y'"),
        (["--count", "2", "--foreground", "--server", "http://y"], "--foreground runs one worker"),
        (["--pool", "a b", "--server", "http://y"], "--pool must be a name, got 'a b'"),
    ],
)
def test_what_a_worker_cannot_start_with_is_said(
    tmp_path: Path, words: list[str], said: str
) -> None:
    answer = Node(tmp_path).here("worker", "start", *words)
    assert (answer.code, answer.out) == (3, "")
    assert said in answer.err


@pytest.mark.rule("CLI-2")
def test_with_auth_only_tokens_open_the_server(tmp_path: Path) -> None:
    made = Node(tmp_path).here("server", "token", "add", "ada", "--role", "admin", "--json")
    token = made.objects()[0]["token"]
    with node(tmp_path, "--auth", workers=1) as up:
        refused = up.there("list", NOETL_TOKEN="")
        assert (refused.code, refused.out) == (3, "")
        assert "set NOETL_TOKEN to a token of this server" in refused.err
        assert token not in json.dumps(up.status())
        assert up.there("register", HELLO, NOETL_TOKEN=token).code == 0
        # Its own workers have a token of theirs.
        done = up.there("execute", "examples/hello", "--wait", NOETL_TOKEN=token)
        assert (done.code, done.err) == (0, "")
        viewer = up.there("server", "token", "add", "bob", "--role", "viewer", NOETL_TOKEN=token)
        assert viewer.code == 0
        bob = viewer.out.strip()
        assert up.there("list", NOETL_TOKEN=bob).code == 0
        assert (
            "and this needs author; ask an admin for a token of that role"
            in up.there("register", HELLO, NOETL_TOKEN=bob).err
        )
        rows = up.here("server", "token", "list", "--json").objects()
        [its] = [row["token_id"] for row in rows if row["name"] == "bob"]
        assert up.there("server", "token", "revoke", its, NOETL_TOKEN=token).code == 0
        assert up.there("list", NOETL_TOKEN=bob).code == 3
        context = ("context", "add", "there", "--server", up.url, "--token-stdin")
        assert up.here(*context, stdin=f"{token}\n".encode()).code == 0
        assert up.here("context", "use", "there").code == 0
        assert up.here("list", "--json").objects()[0]["path"] == "examples/hello"
        assert token not in up.here("context", "list").out
    logged = (tmp_path / "run" / "server.log").read_text()
    assert token not in logged
    left = Node(tmp_path).here("server", "token", "list", "--context", "local", "--json").objects()
    assert all(row["revoked_at"] for row in left if row["role"] == "worker")


@pytest.mark.rule("CLI-1")
def test_up_is_a_whole_node_and_down_ends_it(tmp_path: Path) -> None:
    here = Node(tmp_path)
    assert here.here("down").out == f"nothing runs on {tmp_path}\n"
    up = here.here("up", "--detach", "--workers", "1", "--port", "0", "--json")
    try:
        assert up.code == 0, up
        here.url = up.objects()[0]["url"]
        assert here.there("register", HELLO).code == 0
        assert here.there("execute", "examples/hello", "--wait").code == 0
    finally:
        down = here.here("down")
    assert (down.code, down.out) == (0, "all of it has stopped\n")
    assert [file.name for file in (tmp_path / "run").glob("*.pid")] == []
