"""Members that are told to stop, one after the other, under load (T21)."""

import signal
from collections import Counter
from itertools import cycle
from pathlib import Path

import pytest
from tests.support.nats import NatsServer
from tests.support.oracle import losses
from tests.support.postgres import Database
from tests.support.steps import arc, step
from tests.support.trial import (
    LEASE,
    PATIENCE,
    Trial,
    lasting,
    one_task,
    sized,
    trial,
    until,
    written,
)

TAKES = sized((1, 2, 6, 1, 4), (5, 20, 90, 200))
"""Seconds that a first task takes."""
ROUNDS = sized(2, 3)
"""From the second on, what is told to stop has itself begun again."""
TOGETHER = sized(3, 8)
"""Executions that begin before each restart."""

TWO_TASKS = written(
    "rolling",
    step("start", lasting("first", "{{ workload.seconds }}"), arcs=[arc("end")]),
    step("end", lasting("second", 1)),
    workload={"url": "", "seconds": 0},
)


@pytest.mark.fault("T21")
def test_a_rolling_restart_fails_repeats_and_counts_nothing(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    with trial(tmp_path, database, nats_server.url) as fleet:
        fleet.crew(2, 3)
        fleet.register(TWO_TASKS)
        took = roll(fleet)
        assert fleet.all_ended(list(took)) == {"completed": len(took)}
        logs = fleet.judged()
        print(f"effects: {len(fleet.ledger.effects)} of {2 * len(took)}; losses: {losses(logs)}")
        assert losses(logs) == 0
        assert Counter(fleet.ledger.effects) - Counter(set(fleet.ledger.effects)) == Counter()
        assert len(fleet.ledger.effects) == 2 * len(took)


def roll(fleet: Trial) -> dict[str, float]:
    """Execution → the seconds of its first task."""
    took: dict[str, float] = {}
    takes = cycle(TAKES)
    for _ in range(ROUNDS):
        for member in [*fleet.fleet.workers, *fleet.fleet.servers]:
            given = [next(takes) for _ in range(TOGETHER)]
            begun = fleet.start("rolling", *({"seconds": seconds} for seconds in given))
            took.update(zip(begun, given, strict=True))
            fleet.begun(begun)
            assert member.stop(PATIENCE) == 0
            member.again()
            if member.url is None:
                fleet.there(member)
            else:
                fleet.fleet.ready()
    return took


@pytest.mark.fault("T21")
def test_a_worker_that_drains_keeps_what_it_runs(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    """Ten tasks longer than the lease."""
    with trial(tmp_path, database, nats_server.url) as fleet:
        fleet.crew(1, 1)
        (drains,) = fleet.fleet.workers
        fleet.register(one_task())
        begun = fleet.start("one", *[{"seconds": 3 * LEASE}] * 10)
        fleet.begun(begun)
        fleet.there(fleet.fleet.worker())
        assert drains.stop() == 0
        assert fleet.all_ended(begun) == {"completed": 10}
        logs = fleet.judged()
        assert fleet.times() == {1: 10}
        assert losses(logs) == 0


def test_a_worker_that_is_told_twice_gives_back_what_it_runs(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    """The first SIGTERM waits for the tasks; the second does not, and no loss is counted."""
    with trial(tmp_path, database, nats_server.url) as fleet:
        fleet.crew(1, 1)
        (hurried,) = fleet.fleet.workers
        fleet.register(one_task())
        begun = fleet.start("one", {"seconds": 5 * LEASE})
        fleet.begun(begun)
        hurried.running.tell(signal.SIGTERM)
        until(lambda: "has 600 s to end" in hurried.running.out + hurried.running.err)
        assert hurried.stop() == 0
        fleet.there(fleet.fleet.worker())
        assert fleet.all_ended(begun) == {"completed": 1}
        assert losses(fleet.judged()) == 0
        assert fleet.times() == {2: 1}
