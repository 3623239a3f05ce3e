"""
Random kills and pauses of servers, workers, PostgreSQL and NATS under load, for as long as told.

`python -m tests.faults.soak --minutes 20`. At the end it prints how many executions were accepted,
how often something was killed or paused, how many effects there were, and how many executions were
lost, doubled, stuck or wrong, which must be none. `--seed` chooses the faults.
"""

import asyncio
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec
from tests.faults.calamities import CALAMITIES, Place
from tests.support import nats, postgres
from tests.support.disturbed import child
from tests.support.fleet import Fleet, sailing
from tests.support.ledger import Effect, Ledger, keeping
from tests.support.oracle import Event, accepted_in, outcomes_in, twice
from tests.support.postgres import Database
from tests.system.fleet_load import undisturbed
from tests.system.test_fleet_deaths import NAMES, begun, plain, registered, text_of

from noetl.adapters.postgres.object_store import PostgresObjectStore
from noetl.adapters.postgres.storage import open_storage
from noetl.client.client import Client
from noetl.messages.envelope import envelope
from noetl.ports.result_store import ResultStore
from noetl.server.replay import rows_of
from noetl.server.verify import verify

LEASE = 5.0
EVERY = (0.5, 4.0)
"""Seconds between two faults."""
CREW = (2, 3)
DRIVERS, TOGETHER = 2, 12
OVER = ("completed", "failed", "cancelled")
STUCK = 300.0
"""Seconds after the last fault within which everything must have ended."""


class Count(msgspec.Struct):
    """What came of it all."""

    executions: int = 0
    faults: Counter[str] = msgspec.field(default_factory=Counter)
    effects: int = 0
    repeated: int = 0
    """Effects that were asked for more than once, which at-least-once allows."""
    lost: list[str] = msgspec.field(default_factory=list)
    doubled: list[str] = msgspec.field(default_factory=list)
    stuck: list[str] = msgspec.field(default_factory=list)
    wrong: list[str] = msgspec.field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.stuck or self.wrong)

    def shown(self) -> str:
        faults = ", ".join(f"{name} {times}" for name, times in sorted(self.faults.items()))
        return (
            f"executions {self.executions}; faults {self.faults.total()} ({faults}); "
            f"effects {self.effects}, asked for again {self.repeated}; lost {len(self.lost)}, "
            f"doubled {len(self.doubled)}, stuck {len(self.stuck)}, wrong {len(self.wrong)}"
        )


class Fate(threading.Thread):
    """Chooses a calamity every now and then, until told to stop."""

    def __init__(self, place: Place, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self._place = place
        self._chance = chance
        self.over = threading.Event()
        self.faults: Counter[str] = Counter()
        self.broke: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.over.wait(self._chance.uniform(*EVERY)):
                name = self._chance.choices(
                    list(CALAMITIES), [one.weight for one in CALAMITIES.values()]
                )[0]
                self.faults[name] += 1
                CALAMITIES[name].strikes(self._place, self._chance)
        except BaseException as broke:  # told at the end: a soak without faults proves nothing
            self.broke = broke


class Driver(threading.Thread):
    """Starts a few executions, waits for all of them, and begins anew."""

    def __init__(self, fleet: Fleet, ledger: Ledger, number: int, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self._fleet, self._ledger, self._chance = fleet, ledger, chance
        self._keys = f"{number}"
        self.over = threading.Event()
        self.started: dict[str, str] = {}
        self.ended: dict[str, dict[str, Any]] = {}
        self.broke: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.over.is_set():
                self._start_some()
                self._wait_for_all()
        except BaseException as broke:
            self.broke = broke

    def _start_some(self) -> None:
        for _ in range(TOGETHER):
            name = NAMES[len(self.started) % len(NAMES)]
            number = int(f"{self._keys}{len(self.started):07}")
            made = self._fleet.ask(partial(begun, name, number, self._ledger.url), self._chance)
            self.started[made.execution_id] = name

    def _wait_for_all(self) -> None:
        """Whoever is still stuck after the soak is named by it, not here."""
        for execution_id in self.started:
            while execution_id not in self.ended and not self.over.is_set():
                self.look(execution_id, 2.0)

    def look(self, execution_id: str, wait: float) -> None:
        found = self._fleet.ask(partial(summary_of, execution_id, wait), self._chance)
        if found.status in OVER:
            fields = ("status", "ctx", "result", "error", "steps")
            self.ended[execution_id] = {field: getattr(found, field) for field in fields}


def summary_of(execution_id: str, wait: float, client: Client) -> Any:
    return client.summary(execution_id, wait=wait)


# ── judging ──────────────────────────────────────────────────────────────────────────────────


async def judge(database: Database, names: dict[str, str], effects: set[Effect]) -> Count:
    """Read from the database alone, when nobody else is there any more."""
    count = Count(executions=len(names))
    home = await open_storage(database.url)
    results = ResultStore(PostgresObjectStore(database.url))
    try:
        for execution_id in names:
            events = await log_of(home.log, execution_id)
            ends = sum(event["name"] == "workflow.finished" for event in events)
            if not events or accepted_in(execution_id, events) - effects:
                count.lost.append(execution_id)
            if ends > 1 or twice(outcomes_in(events)):
                count.doubled.append(execution_id)
            if ends == 0:
                count.stuck.append(execution_id)
            proof = await verify(home.log, home.playbooks, results, execution_id)
            if not proof.ok:
                count.wrong.append(f"{execution_id}: {proof.message}")
    finally:
        await results.close()
        await home.close()
    return count


async def log_of(log: Any, execution_id: str) -> list[Event]:
    return [
        envelope(event, execution_id=execution_id, seq=seq, at=row.at, trace_id=None)
        async for row in rows_of(log, execution_id)
        for seq, event in enumerate(msgspec.json.decode(row.events), row.first)
    ]


def compare(count: Count, drivers: list[Driver], expected: dict[str, Any]) -> None:
    """Each came to what it comes to where nothing fails."""
    for driver in drivers:
        for execution_id, name in driver.started.items():
            found = driver.ended.get(execution_id)
            if found is not None and plain(found) != expected[name]:
                count.wrong.append(f"{execution_id} of {name}: {found['status']} {found['error']}")


# ── the soak ─────────────────────────────────────────────────────────────────────────────────


@contextmanager
def placed(folder: Path) -> Iterator[tuple[Place, Ledger, Database]]:
    """A fleet on stores of its own, all of which may be killed."""
    with (
        postgres.running() as sql,
        nats.running() as queue,
        sql.fresh_database() as database,
        keeping() as ledger,
        sailing(folder / "fleet", database, queue.url, NOETL_LEASE_TTL=f"{LEASE:g}") as fleet,
    ):
        for _ in range(CREW[0]):
            fleet.server()
        for _ in range(CREW[1]):
            fleet.worker()
        fleet.ready()
        yield Place(fleet, sql, queue, LEASE), ledger, database


def soaked(folder: Path, seconds: float, seed: int) -> Count:
    """What came of so many seconds of it."""
    expected = undisturbed(folder)
    with placed(folder) as (place, ledger, database):
        fleet, chance = place.fleet, random.Random(seed)
        for text in (child(), *(text_of(name) for name in NAMES)):
            fleet.ask(partial(registered, text))
        drivers = [
            Driver(fleet, ledger, number, random.Random(seed + number))
            for number in range(1, DRIVERS + 1)
        ]
        fate = Fate(place, chance)
        for thread in (*drivers, fate):
            thread.start()
        fate.join(seconds)
        finish(fate, drivers)
        effects = Counter(ledger.effects)
        names = {one: name for driver in drivers for one, name in driver.started.items()}
        fleet.close()
        count = asyncio.run(judge(database, names, set(effects)))
        compare(count, drivers, expected)
    count.faults, count.effects = fate.faults, len(effects)
    count.repeated = sum(times > 1 for times in effects.values())
    return count


def finish(fate: Fate, drivers: list[Driver]) -> None:
    """The faults stop; whatever still runs then has its time to end."""
    fate.over.set()
    fate.join()
    for driver in drivers:
        driver.over.set()
        driver.join()
        late = time.monotonic() + STUCK
        for execution_id in driver.started:
            while execution_id not in driver.ended and time.monotonic() < late:
                driver.look(execution_id, 2.0)
    for broke in (fate.broke, *(driver.broke for driver in drivers)):
        if broke is not None:
            raise broke


@click.command()
@click.option("--minutes", default=20.0, show_default=True, help="how long there are faults")
@click.option("--seed", type=int, help="which faults; drawn where it is not given")
def main(minutes: float, seed: int | None) -> None:
    """Kill and pause, and count."""
    seed = random.randrange(1_000_000) if seed is None else seed
    click.echo(f"seed {seed}, {minutes:g} minutes")
    with tempfile.TemporaryDirectory(prefix="noetl-soak-") as folder:
        count = soaked(Path(folder), minutes * 60, seed)
    click.echo(count.shown())
    for found in (*count.lost, *count.doubled, *count.stuck, *count.wrong):
        click.echo(f"  {found}")
    sys.exit(0 if count.is_clean else 1)


if __name__ == "__main__":
    main()
