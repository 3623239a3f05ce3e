"""Every wake-up is dropped: workers poll, and nothing waits longer than that (T4)."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from tests.support import nats
from tests.support.nats import NatsServer
from tests.support.oracle import Event, losses
from tests.support.postgres import Database
from tests.support.slowness import SLOWNESS
from tests.support.steps import arc, step
from tests.support.trial import lasting, sized, trial, written

from noetl.ports.link import POLL

ONE_BY_ONE = sized(5, 50)
TOGETHER = sized(20, 200)
WITHIN = 2 * POLL + 1.0
"""Seconds that a part waits: a poll that came just before it, and the next one."""

DEAF = """
authorization {
  users: [{
    user: deaf, password: deaf
    permissions: { publish: { deny: ["noetl.work.>", "noetl.worker.>"] } }
  }]
}
"""
"""Nobody may ring for a pool, or nudge a worker."""

TWO = written(
    "two", step("start", lasting("one", 0), arcs=[arc("end")]), step("end", lasting("two", 0))
)


@pytest.fixture
def deaf_queue() -> Iterator[NatsServer]:
    with nats.running(DEAF) as server:
        yield server


def waits(events: list[Event]) -> float:
    """Seconds between the start and the first claim of a worker."""
    first = {event["name"]: event["timestamp"] for event in reversed(events)}
    begun, claimed = (
        datetime.fromisoformat(first[name]) for name in ("workflow.started", "token.claimed")
    )
    return (claimed - begun).total_seconds()


@pytest.mark.fault("T4")
def test_whatever_waits_is_found_by_polling(
    tmp_path: Path, database: Database, deaf_queue: NatsServer
) -> None:
    url = deaf_queue.url.replace("//", "//deaf:deaf@")
    with trial(tmp_path, database, url) as fleet:
        fleet.crew(2, 2)
        fleet.register(TWO)
        for _ in range(ONE_BY_ONE):  # each finds workers that are idle
            assert fleet.all_ended(fleet.start("two", {})) == {"completed": 1}
        assert fleet.all_ended(fleet.start("two", *[{}] * TOGETHER)) == {"completed": TOGETHER}
        logs = fleet.judged()
        longest = max(map(waits, logs.values()))
        print(f"waited for {longest:.1f} s at the most (slowness {SLOWNESS:.1f})")
        assert len(logs) == ONE_BY_ONE + TOGETHER
        assert longest < WITHIN * SLOWNESS
        assert losses(logs) == 0
        assert fleet.times() == {1: 2 * len(logs)}
        told = "".join(member.running.err for member in fleet.fleet.servers)
        assert "permissions violation" in told.lower(), "wake-ups were sent, and dropped"
