"""Clocks that are wrong, and timeouts that outlive whoever counts them (T9)."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from tests.support.ledger import Ledger
from tests.support.nats import NatsServer
from tests.support.oracle import Event, losses
from tests.support.postgres import Database
from tests.support.slowness import SLOWNESS
from tests.support.steps import arc, loop, noop, step, task, when
from tests.support.trial import (
    LEASE,
    PATIENCE,
    Passing,
    Trial,
    lasting,
    one_task,
    passes,
    trial,
    until,
    written,
)
from tests.system.program import NOETL

# ── a worker's clock ─────────────────────────────────────────────────────────────────────────

PAUSE = 6.0
"""Seconds before the retry: long enough to be waited for without a worker (TASK-8)."""
HOUR = 3600

RETRIES = written(
    "retries",
    step(
        "start",
        task(
            "work",
            "http",
            when("outcome.status == 'error'", "retry", attempts=2, delay=PAUSE),
            url="{{ workload.url }}/effect",
            method="POST",
            body={"value": 1, "attempt": "{{ _attempt }}", "fail": 1},
        ),
    ),
)


def wrong_clock(seconds: int) -> dict[str, str]:
    """What sets the clock of a program wrong (the package `faketime`)."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    assert found, "install faketime (`make tools`)"
    shifted = {
        "LD_PRELOAD": str(found[0]),
        "FAKETIME": f"{seconds:+d}s",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    words = [sys.executable, "-c", "import time; print(time.time())"]
    told = subprocess.run(words, env={**os.environ, **shifted}, capture_output=True, check=True)
    assert abs(float(told.stdout) - time.time() - seconds) < HOUR / 60
    return shifted


@contextmanager
def worker_with(environment: dict[str, str], folder: Path, queue: str) -> Iterator[None]:
    """A worker that is a program of its own: a clock is set when a program begins."""
    home = {"NOETL_HOME": str(folder / "shifted"), "NOETL_QUEUE": queue}
    with (folder / "shifted.err").open("wb") as err:
        process = subprocess.Popen(
            [NOETL, "worker", "start", "--foreground"],
            env={**os.environ, **home, **environment},
            stdout=err,
            stderr=err,
        )
        try:
            yield
        finally:
            process.kill()
            process.wait(PATIENCE)


def moments(ledger: Ledger) -> list[float]:
    """When effects came, by a clock that is right."""
    found: list[float] = []
    ledger.came = lambda _: found.append(time.monotonic())
    return found


@pytest.mark.fault("T9")
@pytest.mark.parametrize("seconds", [HOUR, -HOUR], ids=["ahead", "behind"])
def test_the_clock_of_a_worker_changes_no_pause(
    seconds: int, tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    with (
        trial(tmp_path, database, nats_server.url) as fleet,
        worker_with(wrong_clock(seconds), tmp_path, nats_server.url),
    ):
        fleet.crew(1, 0)
        came = moments(fleet.ledger)
        fleet.register(RETRIES)
        begun = fleet.start("retries", {})
        assert fleet.all_ended(begun) == {"completed": 1}
        logs = fleet.judged()
        first, second = came
        print(f"paused for {second - first:.1f} s")
        assert PAUSE - 0.5 < second - first < 5 * PAUSE
        assert losses(logs) == 0


# ── all clocks, while they run ───────────────────────────────────────────────────────────────

DAY = 24 * HOUR
JUMPS = (DAY, -DAY, 0)
EACH = 4


class Clock:
    """Which time programs see: a file that they look at each time."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0)

    def set(self, seconds: int) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{seconds:+d}s\n")
        fresh.rename(self._file)

    @property
    def environment(self) -> dict[str, str]:
        shown = wrong_clock(HOUR)
        del shown["FAKETIME"]
        return {**shown, "FAKETIME_TIMESTAMP_FILE": str(self._file), "FAKETIME_NO_CACHE": "1"}


@pytest.mark.fault("T9")
def test_clocks_that_jump_both_ways_move_no_lease_and_no_order(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    """A day ahead, two days back and a day ahead, under tasks that are longer than the lease."""
    clock = Clock(tmp_path / "clock")
    with trial(tmp_path, database, nats_server.url) as fleet:
        fleet.fleet.server_on(clock.environment)
        fleet.fleet.worker_on(clock.environment)
        fleet.fleet.ready()
        fleet.register(one_task())
        begun: list[str] = []
        for jump in JUMPS:
            fresh = fleet.start("one", *[{"seconds": 1.5 * LEASE}] * EACH)
            fleet.begun(fresh)
            clock.set(jump)
            passes(0.7)
            begun += fresh
        assert fleet.all_ended(begun) == {"completed": len(begun)}
        logs = fleet.judged()
        assert losses(logs) == 0
        assert fleet.times() == {1: len(begun)}
        moments = [at(event) for events in logs.values() for event in events]
        assert max(moments) - min(moments) > DAY, "the clocks did jump"


# ── a step's timeout ─────────────────────────────────────────────────────────────────────────

TIMEOUT = 10.0
EVERY = 3.0
"""Seconds between two deaths."""
DEATHS = 3


def timed(*, looped: bool) -> str:
    many = loop([1, 2], mode="parallel", flight=2, exec="distributed") if looped else None
    late = arc("late", "event.name == 'step.failed'", kind="{{ event.error.kind }}")
    return written(
        "timed",
        step("start", lasting("work", 600), loop=many, arcs=[late], timeout=TIMEOUT),
        step("late", noop("rest")),
    )


@pytest.mark.fault("T9")
@pytest.mark.parametrize("looped", [False, True], ids=["plain", "loop"])
def test_a_step_timeout_fires_once_and_in_time_while_processes_die(
    looped: bool, tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    with trial(tmp_path, database, nats_server.url, NOETL_LEASE_TTL=f"{SLOWNESS:g}") as fleet:
        fleet.crew(2, 1)
        fleet.register(timed(looped=looped))
        begun = fleet.start("timed", {})
        fleet.begun(begun)
        deaths(fleet)
        assert fleet.all_ended(begun) == {"completed": 1}
        events = fleet.judged()[begun[0]]
        failed = [event["data"]["error"]["kind"] for event in named(events, "step.failed")]
        assert failed == ["timeout"]
        took = at(named(events, "step.failed")[0]) - at(named(events, "step.started")[0])
        print(f"fired after {took:.1f} s")
        assert TIMEOUT - 0.5 < took < (1 + SLOWNESS) * TIMEOUT


def deaths(fleet: Trial) -> None:
    """A server every time, and its worker as often as is no reason to give up."""
    (worker,) = fleet.fleet.workers
    for number in range(DEATHS):
        until(Passing(EVERY))
        fleet.fleet.servers[number % 2].again()
        if number < DEATHS - 1:
            worker.again()


def named(events: list[Event], name: str) -> list[Event]:
    return [event for event in events if event["name"] == name]


def at(event: Event) -> float:
    return datetime.fromisoformat(event["timestamp"]).timestamp()
