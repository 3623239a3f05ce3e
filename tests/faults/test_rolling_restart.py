"""Members that are told to stop, one after the other, under load (T21)."""

from collections import Counter
from itertools import cycle
from pathlib import Path

from tests.support.nats import NatsServer
from tests.support.oracle import losses
from tests.support.postgres import Database
from tests.support.steps import arc, step
from tests.support.trial import LEASE, Trial, lasting, one_task, sized, trial, written

TAKES = sized((1, 2, 6, 1, 4), (5, 20, 90, 200))
"""Seconds that a first task takes."""
FITS = 25.0
"""Seconds that a worker surely waits for when it is told to stop."""
ROUNDS = 3
TOGETHER = sized(3, 8)
"""Executions that begin before each restart."""

TWO_TASKS = written(
    "rolling",
    step("start", lasting("first", "{{ workload.seconds }}"), arcs=[arc("end")]),
    step("end", lasting("second", 1)),
    workload={"url": "", "seconds": 0},
)


def test_a_rolling_restart_fails_repeats_and_counts_nothing(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    with trial(tmp_path, database, nats_server.url) as fleet:
        fleet.crew(2, 3)
        fleet.register(TWO_TASKS)
        took = roll(fleet)
        assert fleet.all_ended(list(took)) == {"completed": len(took)}
        logs = fleet.judged()
        repeated = Counter(fleet.ledger.effects) - Counter(set(fleet.ledger.effects))
        print(f"effects: {len(fleet.ledger.effects)} of {2 * len(took)}; losses: {losses(logs)}")
        assert losses(logs) == 0
        drained = {one for one, seconds in took.items() if seconds <= FITS}
        assert [key for key, _ in repeated if key.partition("-")[0] in drained] == []


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
            assert member.stop() == 0
            member.again()
            if member.url is None:
                fleet.there(member)
            else:
                fleet.fleet.ready()
    return took


def test_a_worker_that_drains_keeps_what_it_runs(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    """Ten tasks longer than the lease and shorter than the drain."""
    with trial(tmp_path, database, nats_server.url) as fleet:
        fleet.crew(1, 1)
        (drains,) = fleet.fleet.workers
        fleet.register(one_task())
        begun = fleet.start("one", *[{"seconds": sized(3 * LEASE, FITS)}] * 10)
        fleet.begun(begun)
        fleet.there(fleet.fleet.worker())
        assert drains.stop() == 0
        assert fleet.all_ended(begun) == {"completed": 10}
        logs = fleet.judged()
        assert fleet.times() == {1: 10}
        assert losses(logs) == 0
