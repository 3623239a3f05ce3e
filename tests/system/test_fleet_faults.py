"""
Workers that freeze or are cut off, a NATS that forgets, a PostgreSQL that crashes (T2, T5 to T7).

Real processes on real stores of their own. Every execution ends once, and right; its log proves
itself. `NOETL_FAULTS=full` runs 400 executions for each fault; without it a dozen.
"""

import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support import nats, postgres
from tests.support.fleet import PATIENCE, Fleet, Member
from tests.support.nats import NatsServer
from tests.support.postgres import Database, PostgresServer
from tests.support.proxy import between
from tests.system.fleet_load import EXECUTIONS, Load, loaded, undisturbed

from noetl.messages import events as e

FAULT_EVERY = 1.5
"""Seconds between two faults: long enough for something to go on in between."""
FAULTS = max(3, EXECUTIONS // 10)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return undisturbed(tmp_path_factory.mktemp("undisturbed"))


@pytest.fixture(scope="module")
def own_nats() -> Iterator[NatsServer]:
    """One that may be stopped."""
    with nats.running() as server:
        yield server


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[PostgresServer]:
    """One that may crash; the disk does not, so that nothing need be synced to it."""
    with postgres.running() as server:
        yield server


def until(fact: Callable[[], bool], fleet: Fleet) -> None:
    """Wait for a fact, not for a time."""
    late = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < late, fleet.told()
        threading.Event().wait(0.01)


class Disturber(threading.Thread):
    """Does something bad, again and again, until it is told to stop or has had enough."""

    def __init__(self, *faults: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._faults = faults
        self._over = threading.Event()
        self.done = 0
        self.broke: BaseException | None = None

    def run(self) -> None:
        try:
            while self.done < FAULTS and not self._over.wait(FAULT_EVERY):
                self._faults[self.done % len(self._faults)]()
                self.done += 1
        except BaseException as broke:
            self.broke = broke

    def __enter__(self) -> "Disturber":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.join(PATIENCE)
        assert self.broke is None, self.broke
        assert self.done == FAULTS


def go_on(load: Load, disturber: Disturber) -> None:
    """As long as there are faults, something runs."""
    while disturber.is_alive():
        load.start()
        load.finish()
    load.start()
    load.finish()


# ── workers ──────────────────────────────────────────────────────────────────────────────────


@contextmanager
def in_mid_task(load: Load) -> Iterator[None]:
    """Tasks have begun, and none ends before this does."""
    answered = threading.Event()

    def wait(_: int) -> None:
        answered.wait(PATIENCE)

    load.ledger.came = wait
    try:
        load.start()
        until(lambda: len(load.ledger.effects) > 2, load.fleet)
        yield
    finally:
        load.ledger.came = lambda _: None
        answered.set()


@pytest.mark.fault("T2")
@pytest.mark.rule("WRK-1", "EVT-3")
def test_a_worker_that_froze_past_its_lease_changes_nothing(
    tmp_path: Path, database: Database, nats_server: NatsServer, expected: dict[str, Any]
) -> None:
    """T2. What the frozen one had is done by the other; thawed, it is a good worker again."""
    with loaded(tmp_path, database, nats_server.url, expected) as load:
        fleet = load.fleet
        fleet.server()
        frozen = fleet.worker()
        load.register()
        with in_mid_task(load):
            frozen.running.tell(signal.SIGSTOP)
        other = fleet.worker()
        load.finish()
        other.kill()
        frozen.running.tell(signal.SIGCONT)
        load.start(len(expected))
        load.finish()
        load.prove()
        assert load.count(e.LeaseExpired) > 2
        assert frozen.running.process.is_alive()


@pytest.mark.fault("T7")
@pytest.mark.rule("WRK-1", "EVT-3")
def test_a_worker_that_is_cut_off_changes_nothing(
    tmp_path: Path, database: Database, nats_server: NatsServer, expected: dict[str, Any]
) -> None:
    """T7. Its line to the queue is silent, and it works on; what it then says is refused."""
    with (
        loaded(tmp_path, database, nats_server.url, expected) as load,
        between(nats_server.port) as line,
    ):
        fleet = load.fleet
        fleet.server()
        away = fleet.worker(NOETL_QUEUE=f"nats://127.0.0.1:{line.port}")
        load.register()
        with in_mid_task(load):
            line.cut()
        other = fleet.worker()
        load.finish()
        other.kill()
        line.fix()
        load.start(len(expected))
        load.finish()
        load.prove()
        assert load.count(e.LeaseExpired) > 2
        assert away.running.process.is_alive()


# ── the queue ────────────────────────────────────────────────────────────────────────────────


def restart(server: NatsServer, *, wipe: bool = False) -> None:
    server.stop()
    if wipe:
        shutil.rmtree(server._folder / "store", ignore_errors=True)
    assert server.start()


@pytest.mark.fault("T5")
@pytest.mark.rule("WRK-1", "SRV-3")
def test_a_queue_that_restarts_or_forgets_loses_nothing(
    tmp_path: Path, database: Database, own_nats: NatsServer, expected: dict[str, Any]
) -> None:
    """T5, under load: restarted, and wiped."""
    with loaded(tmp_path, database, own_nats.url, expected) as load:
        load.fleet.server()
        load.fleet.server()
        load.fleet.worker()
        load.fleet.worker()
        load.register()
        wipe = partial(restart, own_nats, wipe=True)
        with Disturber(partial(restart, own_nats), wipe) as disturber:
            go_on(load, disturber)
        load.prove()


@pytest.mark.fault("T5")
@pytest.mark.rule("WRK-1")
def test_what_waits_in_a_queue_that_is_wiped_is_offered_again(
    tmp_path: Path, database: Database, own_nats: NatsServer, expected: dict[str, Any]
) -> None:
    """T5: nobody has claimed anything when the store is gone."""
    with loaded(tmp_path, database, own_nats.url, expected) as load:
        load.fleet.server()
        load.register()
        load.start(len(expected))
        restart(own_nats, wipe=True)
        load.fleet.worker()
        load.finish()
        load.prove()


# ── the database ─────────────────────────────────────────────────────────────────────────────


def crash(server: PostgresServer) -> None:
    server.stop("immediate")
    server.start()


def cut_backends(database: Database) -> None:
    """Every connection to the log breaks; the database itself goes on."""
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )


@pytest.mark.fault("T6")
@pytest.mark.rule("SRV-3", "EVT-3")
def test_a_database_that_crashes_loses_nothing(
    tmp_path: Path,
    own_postgres: PostgresServer,
    nats_server: NatsServer,
    expected: dict[str, Any],
) -> None:
    """T6: crashes, and connections that are broken, under load."""
    with (
        own_postgres.fresh_database() as database,
        loaded(tmp_path, database, nats_server.url, expected) as load,
    ):
        load.fleet.server()
        load.fleet.server()
        load.fleet.worker()
        load.fleet.worker()
        load.register()
        cut = partial(cut_backends, database)
        with Disturber(partial(crash, own_postgres), cut) as disturber:
            go_on(load, disturber)
        load.prove()


# ── at the start ─────────────────────────────────────────────────────────────────────────────


def says(member: Member, words: str) -> Callable[[], bool]:
    return lambda: words in member.running.err


@pytest.mark.rule("SRV-3", "WRK-1")
def test_stores_that_are_away_at_the_start_are_waited_for(
    tmp_path: Path,
    own_postgres: PostgresServer,
    own_nats: NatsServer,
    expected: dict[str, Any],
) -> None:
    """Each says what it waits for, and goes on when it is there."""
    with (
        own_postgres.fresh_database() as database,
        loaded(tmp_path, database, own_nats.url, expected) as load,
    ):
        own_postgres.stop()
        own_nats.stop()
        server, worker = load.fleet.server(), load.fleet.worker()
        until(says(server, "wait"), load.fleet)
        until(says(worker, "wait"), load.fleet)
        own_postgres.start()
        assert own_nats.start()
        load.fleet.ready()
        load.register()
        load.start(len(expected))
        load.finish()
        load.prove()
        for member in (server, worker):
            assert "Traceback" not in member.running.err
            assert database.password not in member.running.err
