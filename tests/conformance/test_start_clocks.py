"""START-3 in the nights in which clocks change, at servers that look as time passes."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_start import requested
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered
from tests.support.triggers import PATH, QUICK, Timed, scheduled

from noetl.node.triggers import key_of
from noetl.server import triggering

BERLIN, HOWE = "Europe/Berlin", "Australia/Lord_Howe"
SPRING = ("2026-03-28T23:30:00Z", "2026-03-29T03:00:00Z")
"""In Berlin 02:00 becomes 03:00 at 01:00 UTC: the hour from 02:00 does not exist."""
AUTUMN = ("2026-10-24T23:30:00Z", "2026-10-25T03:00:00Z")
"""In Berlin 03:00 becomes 02:00 at 01:00 UTC: the hour from 02:00 exists twice."""
HALF = ("2026-04-04T13:50:00Z", "2026-04-04T16:00:00Z")
"""On Lord Howe 02:00 becomes 01:30 at 15:00 UTC."""

CASES: dict[str, tuple[dict[str, Any], tuple[str, str], list[str]]] = {
    "cron in the gap": (
        {"cron": "30 2 * * *", "timezone": BERLIN},
        SPRING,
        ["2026-03-29T01:00:00.000Z"],
    ),
    "two times of cron in one gap": (
        {"cron": "15,45 2 * * *", "timezone": BERLIN},
        SPRING,
        ["2026-03-29T01:00:00.000Z"],
    ),
    "cron that exists twice": (
        {"cron": "30 2 * * *", "timezone": BERLIN},
        AUTUMN,
        ["2026-10-25T00:30:00.000Z"],
    ),
    "cron with seconds that exists twice": (
        {"cron": "20 30 2 * * *", "timezone": BERLIN},
        AUTUMN,
        ["2026-10-25T00:30:20.000Z"],
    ),
    "cron in half an hour that exists twice": (
        {"cron": "45 1 * * *", "timezone": HOWE},
        HALF,
        ["2026-04-04T14:45:00.000Z"],
    ),
    "cron by the hour goes on as time passes": (
        {"cron": "0 * * * *", "timezone": BERLIN},
        AUTUMN,
        [f"2026-10-25T0{hour}:00:00.000Z" for hour in range(4)],
    ),
    "an interval knows no clocks": (
        {"every": 3600, "timezone": BERLIN},
        AUTUMN,
        [f"2026-10-25T0{hour}:00:00.000Z" for hour in range(4)],
    ),
    "an interval in the gap": (
        {"every": 3600, "timezone": BERLIN},
        SPRING,
        [f"2026-03-29T0{hour}:00:00.000Z" for hour in range(4)],
    ),
    "at, in the gap": (
        {"at": "2026-03-29T02:30:00", "timezone": BERLIN},
        SPRING,
        ["2026-03-29T01:00:00.000Z"],
    ),
    "at, that exists twice": (
        {"at": "2026-10-25T02:30:00", "timezone": BERLIN},
        AUTUMN,
        ["2026-10-25T00:30:00.000Z"],
    ),
    "at, the second one, by its offset": (
        {"at": "2026-10-25T02:30:00+01:00", "timezone": BERLIN},
        AUTUMN,
        ["2026-10-25T01:30:00.000Z"],
    ),
}


def stamp(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.rule("START-3", "START-2")
@pytest.mark.parametrize(("schedule", "night", "fired"), CASES.values(), ids=CASES)
def test_a_time_in_a_gap_or_an_overlap_fires_once(
    schedule: dict[str, Any],
    night: tuple[str, str],
    fired: list[str],
    tmp_path: Path,
    monkeypatch: Any,
) -> None:
    async def test(cluster: Cluster) -> None:
        timed = Timed(cluster)
        timed.clock.now = stamp(night[0])
        monkeypatch.setattr(triggering, "now_ms", timed.clock)
        servers = [await timed.server() for _ in range(2)]
        cluster.worker(CannedTools())
        await servers[0].register(QUICK)
        await servers[0].register(scheduled(**schedule))
        while timed.clock.now <= stamp(night[1]):
            for server in servers:
                server.starts._looked = timed.clock.now - 1
                await server.starts.look()
            timed.clock.move(300)
        rows = await timed.started(len(fired))
        keys = [(await requested(cluster, row.execution_id)).trigger for row in rows]
        assert keys == [key_of(PATH, at) for at in fired]
        for row in rows:
            await cluster.end_of(row.execution_id)

    clustered(test, tmp_path)
