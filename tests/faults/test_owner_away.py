"""Work goes on, once, while the server that decides for it dies, stops or is paused (T21)."""

import signal
from pathlib import Path

import pytest
from tests.support.nats import NatsServer
from tests.support.oracle import losses
from tests.support.postgres import Database
from tests.support.trial import LEASE, one_task, passes, paused, trial, woken


@pytest.mark.fault("T21")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
def test_a_worker_with_nothing_to_report_outlives_the_owner(
    number: signal.Signals, tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    """One long task: its lease must be renewed at whoever owns its execution now."""
    with trial(tmp_path, database, nats_server.url) as fleet:
        owner = fleet.fleet.server()
        fleet.fleet.worker()
        fleet.fleet.ready()
        fleet.register(one_task())
        begun = fleet.start("one", {"seconds": 5 * LEASE}, at=owner)
        fleet.begun(begun)
        fleet.fleet.server()
        fleet.fleet.ready()
        owner.running.tell(number)
        owner.running.waits(60.0)
        fleet.fleet.servers.remove(owner)
        assert fleet.all_ended(begun) == {"completed": 1}
        logs = fleet.judged()
        assert fleet.times() == {1: 1}
        assert losses(logs) == 0


@pytest.mark.fault("T22")
def test_a_server_that_was_paused_expires_nobody(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    """Its workers beat all the while: that it did not hear them is no fault of theirs."""
    with trial(tmp_path, database, nats_server.url) as fleet:
        fleet.crew(1, 2)
        (server,) = fleet.fleet.servers
        fleet.register(one_task())
        begun = fleet.start("one", *[{"seconds": 4 * LEASE}] * 10)
        fleet.begun(begun)
        paused(server)
        passes(2)
        woken(server)
        assert fleet.all_ended(begun) == {"completed": 10}
        logs = fleet.judged()
        assert fleet.times() == {1: 10}
        assert losses(logs) == 0
