"""An execution with very many events, and readers that hardly read (T12, T13)."""

import socket
from functools import partial
from pathlib import Path

import msgspec
import psycopg
import pytest
from tests.support.fleet import Member
from tests.support.nats import NatsServer
from tests.support.oracle import judge
from tests.support.postgres import Database
from tests.support.steps import arc, loop, noop, step
from tests.support.trial import FULL, Trial, lasting, sized, trial, until, written

from noetl.api.types import EventView
from noetl.client.client import Client
from noetl.server.active import SNAPSHOT_AFTER

ROUNDS = sized(3_000, 250_000)
"""Iterations of four events each: a million of them at full size."""
EFFECTS = sized(40, 5_000)
"""Iterations that are rows of their own: at full size enough for snapshots."""
PAGE = 200
MORE_MEMORY = sized(64, 400)
"""Megabytes that a server may need more for this log than for a small one."""
LARGE = written(
    "large",
    step(
        "start",
        noop("rest"),
        loop=loop(f"{{{{ range({ROUNDS}) | list }}}}", mode="parallel", flight=50),
        arcs=[arc("some")],
    ),
    step(
        "some",
        lasting("one", 0, value="{{ iter.n }}"),
        loop=loop(f"{{{{ range({EFFECTS}) | list }}}}"),
        arcs=[arc("end")],
    ),
    step("end", lasting("last", 600)),
)
SMALL = written("small", step("start", lasting("last", 600)))


def memory(member: Member) -> int:
    """Megabytes that a process had at the most since it began."""
    lines = Path(f"/proc/{member.running.pid}/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(peak) // 1024


def cold(fleet: Trial, execution_id: str) -> int:
    """The memory of a server that was killed and has taken up the execution again."""
    (server,) = fleet.fleet.servers
    server.again()
    fleet.fleet.ready()

    def owned(client: Client) -> bool:
        return bool(client.runtime().counts["owned"])

    until(lambda: fleet.ask(owned), fleet.fleet.told)
    assert fleet.ask(partial(status_of, execution_id)) == "running"
    return memory(server)


def status_of(execution_id: str, client: Client) -> str:
    return str(client.standing(execution_id).status)


def tail(database: Database, execution_id: str) -> tuple[int, int]:
    """Rows of the log, and those that come after the last snapshot."""
    statement = """
        select count(*), count(*) filter (where first_seq > coalesce(
            (select seq from noetl.snapshot where execution_id = %(id)s), 0))
        from noetl.decision where execution_id = %(id)s"""
    with psycopg.connect(database.url) as connection:
        row = connection.execute(statement.encode(), {"id": execution_id}).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def pages_of(client: Client, execution_id: str) -> list[EventView]:
    """Page by page, none of which is longer than asked for."""
    events: list[EventView] = []
    after = 0
    while True:
        page = client.events(execution_id, after=after, limit=PAGE)
        assert len(page.events) <= PAGE
        events += page.events
        after = page.after
        if not page.more:
            return events


@pytest.mark.fault("T12")
def test_a_server_begins_again_by_snapshot_and_tail(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    with trial(tmp_path, database, nats_server.url) as fleet:
        fleet.crew(1, 1)
        fleet.register(LARGE, SMALL)
        (small,) = fleet.start("small", {})
        fleet.begun([small])
        little = cold(fleet, small)
        (large,) = fleet.start("large", {})
        fleet.came(EFFECTS + 2)
        rows, after = tail(database, large)
        much = cold(fleet, large)
        fleet.ledger.open.set()
        assert fleet.all_ended([small, large]) == {"completed": 2}
        events = fleet.ask(lambda client: pages_of(client, large))
        print(f"{len(events)} events in {rows} rows, {after} after the snapshot; {much} MB")
        assert len(events) > 4 * ROUNDS + 4 * EFFECTS
        assert not FULL or rows > SNAPSHOT_AFTER
        assert after < 2 * SNAPSHOT_AFTER
        assert much < little + MORE_MEMORY
        judge(fleet.judged(), fleet.ledger.effects)
        assert len(set(fleet.ledger.effects)) == EFFECTS + 2


# ── readers ──────────────────────────────────────────────────────────────────────────────────

READERS = sized(12, 100)
TOLD = sized(15_000, 60_000)
"""Iterations whose events every reader is sent: some 20 MB in CI."""
STREAMED = written(
    "streamed",
    step("start", noop("rest"), loop=loop(f"{{{{ range({TOLD}) | list }}}}", flight=50)),
)


def reader(server: Member, execution_id: str) -> socket.socket:
    """It asks for the live stream from its beginning, and takes next to nothing of it."""
    assert server.url is not None, "a server has an address"
    host, _, port = server.url.removeprefix("http://").partition(":")
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    peer.connect((host, int(port)))
    path = f"/api/executions/{execution_id}/stream"
    peer.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert peer.recv(1) == b"H"
    return peer


@pytest.mark.fault("T13")
def test_readers_that_hardly_read_cost_little_and_slow_nobody(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    """A byte at a time, while others read the same stream to its end and work goes on."""
    with trial(tmp_path, database, nats_server.url) as fleet:
        fleet.crew(1, 1)
        fleet.register(STREAMED, SMALL)
        fleet.ledger.open.set()
        (told,) = fleet.start("streamed", {})
        assert fleet.ended(told).status == "completed"
        (server,) = fleet.fleet.servers
        events = fleet.ask(lambda client: pages_of(client, told))
        quick = fleet.ask(lambda client: sum(1 for _ in client.stream(told)))
        before = memory(server)
        slow = [reader(server, told) for _ in range(READERS)]
        try:
            for _ in range(2):
                assert fleet.ask(lambda client: sum(1 for _ in client.stream(told))) == quick
                assert [len(peer.recv(1)) for peer in slow] == [1] * READERS
                assert fleet.all_ended(fleet.start("small", {})) == {"completed": 1}
        finally:
            for peer in slow:
                peer.close()
        grown = memory(server) - before
        whole = len(msgspec.json.encode(events)) >> 20
        print(f"{len(events)} events, {whole} MB; {READERS} slow readers cost {grown} MB")
        assert quick >= len(events)
        assert 2 * grown < READERS * whole, "no more than a buffer each"
        fleet.judged()
