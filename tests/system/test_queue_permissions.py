"""What the shipped settings of NATS allow servers and workers, asked of a real one."""

import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fleet import free_port
from tests.support.nats import NatsServer

DEPLOY = Path(__file__).parents[2] / "deploy"
SERVER = {"user": "server", "pass": "s"}
WORKER = {"user": "worker", "pass": "w"}


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    folder = tmp_path_factory.mktemp("nats")
    (folder / "users.conf").write_text('SERVER_PASSWORD: "s"\nWORKER_PASSWORD: "w"\n')
    shutil.copy(DEPLOY / "nats.conf", folder / "nats.conf")
    text = (folder / "nats.conf").read_text().replace("/data", str(folder / "store"))
    lines = [line for line in text.splitlines() if not line.startswith("http")]
    (folder / "server.conf").write_text("\n".join(lines))
    server = NatsServer(free_port(), folder)
    assert server.start(), (folder / "log").read_text()
    yield server
    server.stop()


def refused(queue: NatsServer, user: dict[str, str], *words: str) -> list[str]:
    """What NATS says no to, of these lines of its protocol."""
    with (
        socket.create_connection(("127.0.0.1", queue.port), 10.0) as peer,
        peer.makefile() as told,
    ):
        assert told.readline().startswith("INFO")
        hello = json.dumps({"verbose": False, "pedantic": False, **user})
        peer.sendall(
            "".join(f"{line}\r\n" for line in (f"CONNECT {hello}", *words, "PING")).encode()
        )
        found = []
        while not (line := told.readline()).startswith("PONG"):
            assert line.startswith("-ERR"), line
            found.append(line)
    return found


def listens(*subjects: str) -> list[str]:
    return [f"SUB {subject} {number}" for number, subject in enumerate(subjects, 1)]


def speaks(*subjects: str) -> list[str]:
    return [f"PUB {subject} 2\r\n{{}}" for subject in subjects]


@pytest.mark.rule("WRK-1")
@pytest.mark.parametrize(
    "line",
    [
        *listens(
            *("noetl.server.s1", "noetl.server.>", "noetl.any.ask", "noetl.any.roll", ">"),
            *("_INBOX.>", "_INBOX.noetl.server.x", "_INBOX.noetl.worker.secure.x"),
            *("$JS.>", "noetl.work.default.*"),
        ),
        *speaks(
            *("_INBOX.noetl.worker.default.x.told.1", "_INBOX.noetl.server.x", "noetl.worker.w"),
            *(
                "noetl.work.default.s1",
                "$JS.API.STREAM.UPDATE.NOETL",
                "$JS.API.STREAM.CREATE.NOETL",
            ),
            *("$JS.API.STREAM.PURGE.OBJ_noetl-results", "$JS.API.STREAM.DELETE.OBJ_noetl-results"),
            "$JS.API.CONSUMER.MSG.NEXT.NOETL.secure",
            *("$JS.API.STREAM.CREATE.OBJ_noetl-results", "$JS.API.CONSUMER.CREATE.NOETL.default"),
            "$JS.API.CONSUMER.DURABLE.CREATE.NOETL.default",
            "$JS.API.CONSUMER.CREATE.NOETL.default.noetl.work.secure.*",
        ),
    ],
)
def test_a_worker_is_kept_from(queue: NatsServer, line: str) -> None:
    """It hears no other's calls, answers nobody, wakes nobody, and takes no other pool's rings."""
    assert len(refused(queue, WORKER, line)) == 1


@pytest.mark.parametrize(
    "line",
    [
        *listens("noetl.worker.w", "_INBOX.noetl.worker.default.>", "_INBOX.noetl.results.>"),
        *speaks("noetl.server.s1", "noetl.server.s1.ask", "noetl.any.ask", "noetl.any.roll"),
    ],
)
def test_a_worker_may(queue: NatsServer, line: str) -> None:
    assert refused(queue, WORKER, line) == []


def test_a_server_may_answer_and_wake_and_not_play_a_worker(queue: NatsServer) -> None:
    may = [
        *listens("noetl.server.>", "noetl.any.*", "_INBOX.noetl.server.>"),
        *listens("_INBOX.noetl.triggers.>"),
        *speaks("_INBOX.noetl.worker.gpu.x", "noetl.work.gpu.s1", "noetl.worker.w"),
        *speaks("$JS.ACK.ORDERS.noetl-shop.1.1.1.1.0"),
    ]
    assert refused(queue, SERVER, *may) == []
    for line in (*listens("_INBOX.noetl.worker.>"), *speaks("noetl.server.s2", "noetl.any.ask")):
        assert len(refused(queue, SERVER, line)) == 1


def test_nobody_else_comes_in(queue: NatsServer) -> None:
    for user in ({}, {"user": "worker", "pass": "s"}, {"user": "noetl", "pass": "s"}):
        assert "Authorization" in "".join(refused_at_the_door(queue, user))


def refused_at_the_door(queue: NatsServer, user: dict[str, str]) -> list[str]:
    with (
        socket.create_connection(("127.0.0.1", queue.port), 10.0) as peer,
        peer.makefile() as told,
    ):
        told.readline()
        peer.sendall(f"CONNECT {json.dumps(user)}\r\nPING\r\n".encode())
        return [told.readline()]
