"""What can happen to a fleet and its stores: kills, crashes, pauses."""

import os
import random
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from tests.support.fleet import Fleet, Member
from tests.support.nats import NatsServer
from tests.support.postgres import PostgresServer


class Place(msgspec.Struct, frozen=True):
    """A fleet, and the stores that only it uses."""

    fleet: Fleet
    sql: PostgresServer
    queue: NatsServer
    lease: float


Strikes = Callable[[Place, random.Random], None]


class Calamity(msgspec.Struct, frozen=True):
    """One kind of fault, and how often beside the others."""

    strikes: Strikes
    weight: int


def kill_server(place: Place, chance: random.Random) -> None:
    chance.choice(place.fleet.servers).again()


def kill_worker(place: Place, chance: random.Random) -> None:
    chance.choice(place.fleet.workers).again()


def pause_server(place: Place, chance: random.Random) -> None:
    _pause([pid_of(chance.choice(place.fleet.servers))], place, chance)


def pause_worker(place: Place, chance: random.Random) -> None:
    _pause([pid_of(chance.choice(place.fleet.workers))], place, chance)


def crash_postgres(place: Place, _: random.Random) -> None:
    place.sql.stop("immediate")
    place.sql.start()


def pause_postgres(place: Place, chance: random.Random) -> None:
    _pause(list(family_of(place.sql.pid)), place, chance)


def restart_nats(place: Place, chance: random.Random) -> None:
    """With its store, or without."""
    place.queue.stop()
    if chance.random() < 0.5:
        shutil.rmtree(place.queue.store, ignore_errors=True)
    assert place.queue.start()


def pause_nats(place: Place, chance: random.Random) -> None:
    _pause([place.queue.pid], place, chance)


CALAMITIES = {
    "server killed": Calamity(kill_server, 3),
    "worker killed": Calamity(kill_worker, 3),
    "server paused": Calamity(pause_server, 2),
    "worker paused": Calamity(pause_worker, 2),
    "PostgreSQL crashed": Calamity(crash_postgres, 1),
    "PostgreSQL paused": Calamity(pause_postgres, 1),
    "NATS restarted": Calamity(restart_nats, 1),
    "NATS paused": Calamity(pause_nats, 1),
}


def pid_of(member: Member) -> int:
    return member.running.pid


def family_of(pid: int) -> Iterator[int]:
    """A process and its children: a database is paused as a whole."""
    yield pid
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid:
                yield int(path.parent.name)


def _pause(pids: list[int], place: Place, chance: random.Random) -> None:
    """Up to twice the lease: whoever wakes may have lost everything."""
    for pid in pids:
        _tell(pid, signal.SIGSTOP)
    threading.Event().wait(chance.uniform(0.1, 2 * place.lease))
    for pid in pids:
        _tell(pid, signal.SIGCONT)


def _tell(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
