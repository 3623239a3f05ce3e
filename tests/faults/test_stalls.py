"""A store that is away stops nobody: the loop of a server goes on answering."""

import http.client
import time
from pathlib import Path
from threading import Event, Thread

from tests.support.fleet import Member
from tests.support.nats import NatsServer
from tests.support.postgres import Database, PostgresServer
from tests.support.proxy import between
from tests.support.steps import arc, noop, step
from tests.support.trial import PATIENCE, Passing, lasting, sized, trial, until, written

AWAY = sized(10.0, 60.0)
"""Seconds that the database is away."""
HALF = 750_000
TIMES, FREE = 10.0, 0.2
"""How much longer than beside it an answer may take, and the seconds that are free."""

TEXT = written(
    "carries",
    step(
        "start",
        lasting("work", 0),
        arcs=[arc("end", None, big="{{ workload.half ~ workload.half }}")],
    ),
    step("end", noop("rest")),
    workload={"url": "", "half": ""},
)


class Watch(Thread):
    """Asks a server for its health, again and again."""

    def __init__(self, server: Member) -> None:
        super().__init__(daemon=True)
        assert server.url is not None, "a server has an address"
        self._address = server.url.removeprefix("http://")
        self._over = Event()
        self.longest = 0.0
        self.answers = 0

    def run(self) -> None:
        while not self._over.wait(0.02):
            began = time.monotonic()
            connection = http.client.HTTPConnection(self._address, timeout=PATIENCE)
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
            connection.close()
            self.longest = max(self.longest, time.monotonic() - began)
            self.answers += 1

    def __enter__(self) -> "Watch":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


def test_a_server_answers_while_a_large_value_waits_for_its_store(
    tmp_path: Path,
    database: Database,
    postgres_server: PostgresServer,
    nats_server: NatsServer,
) -> None:
    """Measured against a server beside it that has nothing to do."""
    with (
        trial(tmp_path, database, nats_server.url) as fleet,
        between(database.port) as line,
        postgres_server.fresh_database() as elsewhere,
    ):
        idle = fleet.fleet.server(NOETL_DB=elsewhere.url, NOETL_QUEUE="")
        fleet.fleet.ready()
        fleet.fleet.servers.remove(idle)
        busy = fleet.fleet.server(NOETL_DB=database.at(line.port).url)
        fleet.crew(0, 1)
        fleet.register(TEXT)
        fleet.ledger.came = lambda _: line.cut()
        with Watch(busy) as watched, Watch(idle) as beside:
            begun = fleet.start("carries", {"half": "x" * HALF})
            fleet.begun(begun)
            until(Passing(AWAY))
            line.fix()
            assert fleet.all_ended(begun) == {"completed": 1}
        idle.kill()
        fleet.judged()
        print(f"longest: {watched.longest:.3f} s, beside it {beside.longest:.3f} s")
        assert watched.longest <= max(FREE, TIMES * beside.longest)
