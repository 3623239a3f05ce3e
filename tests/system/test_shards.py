"""Several servers on one home behind one address: `noetl server start --shards N`."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.asking import asking
from tests.support.fleet import PATIENCE
from tests.support.nats import NatsServer
from tests.support.postgres import PostgresServer
from tests.system.servers import Node, node

from noetl.client.client import Client
from noetl.errors import ServerAway
from noetl.node.pid_file import PidFile, RunningProcess, shards_of

TEXT = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: two, path: tests/two}
workflow:
  - step: start
    tool:
      - say: {kind: python, code: "result = 1"}
    next: {arcs: [{step: end}]}
  - step: end
    tool:
      - rest: {kind: noop}
"""
HOLDING = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: holding, path: tests/holding}
workflow:
  - step: start
    tool:
      - look: {kind: shell, command: "ls -l /proc/self/fd"}
"""
STARTS = 30


@pytest.fixture
def sharded(
    tmp_path: Path, postgres_server: PostgresServer, nats_server: NatsServer
) -> Iterator[Node]:
    with (
        postgres_server.fresh_database() as database,
        node(
            tmp_path,
            *("--shards", "2", "--open", "--db", database.url, "--queue", nats_server.url),
            workers=2,
            NOETL_LEASE_TTL="4",
        ) as up,
    ):
        yield up


def shards(up: Node) -> list[RunningProcess]:
    """Both, once both are ready."""
    for _ in asking(lambda: up.here("server", "logs").out, PATIENCE):
        found = [one for _, one in shards_of(up.home) if one is not None and one.url is not None]
        if len(found) == 2:
            break
    return found


def minding(up: Node) -> RunningProcess:
    """The process that started them."""
    running = PidFile(up.home, "server").running()
    assert running is not None
    return running


def started(client: Client, count: int) -> list[str]:
    """As a client does it: what it does not know is asked again with the same key."""
    made: list[str] = []
    until = time.monotonic() + PATIENCE
    while len(made) < count:
        assert time.monotonic() < until
        with suppress(ServerAway):
            made.append(client.execute("tests/two", key=f"start-{len(made)}").execution_id)
    return made


@pytest.mark.rule("CLI-2")
def test_shards_answer_at_one_address_and_one_that_dies_is_started_again(sharded: Node) -> None:
    first, second = shards(sharded)
    parent = minding(sharded)
    assert len({first.pid, second.pid, parent.pid}) == 3
    assert {first.url, second.url, parent.url} == {sharded.url}
    with Client(sharded.url, pauses=(0.1,) * 50) as client:
        client.register(TEXT)
        before = started(client, STARTS)
        os.kill(first.pid, signal.SIGKILL)
        after = [client.execute("tests/two", key=f"more-{n}").execution_id for n in range(STARTS)]
        for execution_id in before + after:
            assert client.summary(execution_id, wait=PATIENCE).status == "completed"
        names = {one.name for one in client.runtime().servers}
    assert len(set(before + after)) == 2 * STARTS
    again = shards(sharded)
    assert again[0].pid != first.pid
    assert again[1].pid == second.pid, "the other went on"
    assert len(names) >= 2
    said = sharded.here("server", "status")
    assert (said.code, said.err) == (0, "")
    assert f"shard 1: process {again[0].pid}" in said.out
    assert "a shard ended with -9; another starts in 0.5 s" in sharded.here("server", "logs").out
    assert sharded.here("server", "stop").code == 0
    assert [one for one in (parent, *again) if one.alive] == []
    assert list((sharded.home / "run").glob("server*.pid")) == []


@pytest.mark.rule("CLI-2")
def test_nobody_can_join_the_port_of_shards(sharded: Node) -> None:
    shards(sharded)
    port = int(sharded.url.rpartition(":")[2])
    with socket.socket() as stranger:  # as a task of a worker with the user of the server does
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        with pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", port))


@pytest.mark.rule("CLI-2")
def test_a_task_holds_no_socket_of_the_shards(sharded: Node) -> None:
    shards(sharded)
    with Client(sharded.url) as client:
        client.register(HOLDING)
        started = client.execute("tests/holding").execution_id
        assert client.summary(started, wait=PATIENCE).status == "completed"
        held = "\n".join(line.text for line in client.lines(started).lines)
    assert "0 -> /dev/null" in held, "its own input, which shows that the list is one"
    assert "socket:" not in held


@pytest.mark.rule("CLI-2")
def test_shards_end_with_the_process_that_minds_them(sharded: Node) -> None:
    both = shards(sharded)
    os.kill(minding(sharded).pid, signal.SIGKILL)
    until = time.monotonic() + PATIENCE
    while any(one.alive for one in both):
        assert time.monotonic() < until, "a shard outlives the process that minds it"


@pytest.mark.parametrize(
    ("words", "lacks"),
    [((), "--shards 2 needs PostgreSQL"), (("--db", "postgresql://u@db/x"), "needs NATS")],
)
@pytest.mark.rule("CLI-2")
def test_shards_are_refused_where_nothing_carries_them(
    tmp_path: Path, words: tuple[str, ...], lacks: str
) -> None:
    for way in ((), ("--foreground",)):
        refused = Node(tmp_path).here("server", "start", "--shards", "2", *words, *way)
        assert refused.code == 3
        assert lacks in refused.err
        assert "leave out --shards" in refused.err
