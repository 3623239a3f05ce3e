"""A worker in a network of its own, whose packets are dropped (T7)."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest
from tests.support.island import Island, Weather, an_island
from tests.support.nats import NatsServer
from tests.support.oracle import losses, lost_workers
from tests.support.postgres import Database
from tests.support.proxy import between
from tests.support.slowness import SLOWNESS
from tests.support.trial import LEASE, Trial, one_task, passes, sized, trial
from tests.system.program import NOETL

HELD = 4
MANY = sized(40, 400)
BACK_WITHIN = 40.0
"""
Seconds after which a worker whose line is back has taken work: the silence is noticed within 20
(`adapters.nats.line`), two tries to connect take 10, an answer 10.
"""
SHORT, LONG = 0.25, 0.6
"""Seconds of rain, and of sunshine."""


class Away(msgspec.Struct):
    """A worker elsewhere, and where it finds the world."""

    process: "subprocess.Popen[bytes]"
    url: str
    said: Path


@contextmanager
def worker_on(
    island: Island, fleet: Trial, database: Database, queue: NatsServer, folder: Path
) -> Iterator[Away]:
    """Everything that it needs is carried to its end of the line."""
    with ExitStack() as lines:
        ports = {
            port: lines.enter_context(between(port, island.here)).port
            for port in (queue.port, database.port, fleet.ledger.server_port)
        }
        there = msgspec.structs.replace(database, host=island.here, port=ports[database.port])
        given = {
            "NOETL_HOME": str(folder / "away"),
            "NOETL_DB": there.url,
            "NOETL_QUEUE": f"nats://{island.here}:{ports[queue.port]}",
        }
        said = folder / "away.err"
        with said.open("wb") as err:
            process = subprocess.Popen(
                island.inside([str(NOETL), "worker", "start", "--foreground"]),
                env={**os.environ, **given},
                stdout=err,
                stderr=err,
            )
            try:
                yield Away(process, f"http://{island.here}:{ports[fleet.ledger.server_port]}", said)
            finally:
                process.kill()
                process.wait()


@pytest.mark.fault("T7")
def test_a_worker_whose_packets_are_dropped_changes_nothing_and_comes_back(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    """Nothing is closed, nothing refused: both ends hear nothing, for longer than the lease."""
    with (
        trial(tmp_path, database, nats_server.url) as fleet,
        an_island() as island,
        worker_on(island, fleet, database, nats_server, tmp_path) as away,
    ):
        fleet.crew(1, 0)
        fleet.register(one_task())
        begun = fleet.start("one", *[{"seconds": 2 * LEASE, "url": away.url}] * HELD)
        fleet.begun(begun)
        island.cut()
        other = fleet.fleet.worker()
        assert fleet.all_ended(begun) == {"completed": HELD}
        other.kill()
        passes(1)
        island.fix()
        back = time.monotonic()
        fresh = fleet.start("one", *[{"url": away.url}] * HELD)
        assert fleet.all_ended(fresh) == {"completed": HELD}, away.said.read_text()
        took = time.monotonic() - back
        print(f"it had work again after {took:.1f} s (slowness {SLOWNESS:.1f})")
        logs = fleet.judged()
        print(f"leases that ran out: {losses(logs)}")
        assert lost_workers(logs) == dict.fromkeys(begun, 1)
        assert took < BACK_WITHIN * SLOWNESS
        assert away.process.poll() is None


@pytest.mark.fault("T7")
def test_a_line_that_loses_packets_loses_no_outcome(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    with (
        trial(tmp_path, database, nats_server.url) as fleet,
        an_island() as island,
        worker_on(island, fleet, database, nats_server, tmp_path) as away,
    ):
        fleet.crew(1, 0)
        fleet.register(one_task())
        with Weather(island, SHORT, LONG) as weather:
            begun = fleet.start("one", *[{"seconds": 0.2, "url": away.url}] * MANY)
            assert fleet.all_ended(begun) == {"completed": MANY}, away.said.read_text()
        fleet.judged()
        print(f"storms: {weather.storms}; effects: {len(fleet.ledger.effects)} of {MANY}")
        assert weather.storms > 0
