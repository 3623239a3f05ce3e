"""A worker whose line to NATS comes and goes keeps its leases, and loses no report (T5, T7)."""

from pathlib import Path

import pytest
from tests.support.nats import NatsServer
from tests.support.oracle import losses
from tests.support.postgres import Database
from tests.support.proxy import between
from tests.support.steps import loop, step
from tests.support.trial import LEASE, lasting, one_task, passes, trial, written

BREAKS = 5
MANY = 30


@pytest.mark.fault("T5", "T7")
def test_heartbeats_go_on_while_a_line_is_made_again(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    """One task has nothing to say for long, another one's reports wait for the line."""
    host, _, port = nats_server.url.rpartition(":")
    many = written("many", step("start", lasting("work", LEASE / 10), loop=loop(list(range(MANY)))))
    with trial(tmp_path, database, nats_server.url) as fleet, between(int(port)) as line:
        fleet.fleet.worker(NOETL_QUEUE=f"{host}:{line.port}")
        fleet.crew(1, 0)
        fleet.register(one_task(), many)
        begun = fleet.start("one", {"seconds": BREAKS * LEASE}) + fleet.start("many", {})
        fleet.begun(begun)
        for _ in range(BREAKS):
            line.break_()
            passes(0.3)
            line.fix()
            passes(0.3)
        assert fleet.all_ended(begun) == {"completed": 2}
        logs = fleet.judged()
        assert fleet.times() == {1: MANY + 1}
        assert losses(logs) == 0
