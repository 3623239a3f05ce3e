"""A fleet under trial: executions on it, the ledger of what they did, and the oracle at the end."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from tests.support.fleet import Fleet, Member, sailing
from tests.support.ledger import Ledger, keeping
from tests.support.oracle import PAGE, Event, Logs, judge_fleet, log_of
from tests.support.postgres import Database
from tests.support.slowness import SLOWNESS
from tests.support.steps import Tree, playbook, step, task

from noetl.api.types import KeyedRequest, Summary
from noetl.client.client import Client

FULL = os.environ.get("NOETL_FAULTS") == "full"
"""`make faults`: the default lease times, and the sizes at which the faults were seen."""
LEASE = 15.0 if FULL else 3.0 * SLOWNESS
PATIENCE = 1200.0 if FULL else 90.0 * SLOWNESS
"""Seconds before something that hangs fails its test; never a time that is expected to pass."""
T = TypeVar("T")
OVER = ("completed", "failed", "cancelled")


def sized(small: Any, full: Any) -> Any:
    """For CI, or for `make faults`."""
    return full if FULL else small


def lasting(label: str, seconds: Any, *rules: Tree, value: Any = 1) -> Tree:
    """A task whose one effect is answered after so many seconds."""
    body = {"value": value, "attempt": "{{ _attempt }}", "fail": 0, "seconds": seconds}
    url = "{{ workload.url }}/effect"
    return task(label, "http", *rules, timeout={"read": 600}, url=url, method="POST", body=body)


def written(name: str, *steps: Tree, **roots: Any) -> str:
    """A playbook at `tests/NAME` that is given the address of the ledger."""
    head = {"name": name, "path": f"tests/{name}"}
    return playbook(*steps, **{"workload": {"url": ""}, "metadata": head, **roots})


def one_task(name: str = "one", description: str = "", **roots: Any) -> str:
    """One effect that takes `workload.seconds`."""
    head = {"name": name, "path": f"tests/{name}", "description": description or name}
    given = {"workload": {"url": "", "seconds": 0}, "metadata": head, **roots}
    return written(name, step("start", lasting("work", "{{ workload.seconds }}")), **given)


def until(fact: Callable[[], bool], why: Callable[[], str] = str) -> None:
    """Wait for a fact, not for a time."""
    late = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < late, why()
        threading.Event().wait(0.02)


class Passing:
    """A time that must pass for the fault to be one: a lease, a number of beats."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def __call__(self) -> bool:
        return time.monotonic() >= self._until


def passes(leases: float) -> None:
    """So many lease times go by."""
    until(Passing(leases * LEASE))


class Trial:
    """What a test of a fault needs at hand."""

    def __init__(self, fleet: Fleet, ledger: Ledger) -> None:
        self.fleet = fleet
        self.ledger = ledger
        self._number = count(1)

    # ── beginning ────────────────────────────────────────────────────────────────────────────

    def crew(self, servers: int, workers: int, *words: str) -> None:
        for _ in range(servers):
            self.fleet.server()
        for _ in range(workers):
            self.fleet.worker(*words)
        self.fleet.ready()

    def register(self, *texts: str) -> None:
        for text in texts:
            self.fleet.ask(partial(_register, text))

    def start(self, name: str, *payloads: Tree, at: Member | None = None) -> list[str]:
        """Executions of `tests/NAME`, one for each payload, at a server of choice."""
        asked = [
            KeyedRequest(
                path=f"tests/{name}",
                payload={"url": self.ledger.url, **payload},
                key=f"trial-{next(self._number)}",
            )
            for payload in payloads
        ]
        return self.ask(partial(_start, asked), at)

    def ask(self, what: Callable[[Client], T], at: Member | None = None) -> T:
        """From any server, or from one."""
        if at is None:
            return self.fleet.ask(what)
        assert at.url is not None, "a server has an address"
        with Client(at.url, pauses=()) as client:
            return what(client)

    # ── looking ──────────────────────────────────────────────────────────────────────────────

    def came(self, effects: int) -> None:
        """So many effects have begun."""
        until(lambda: len(self.ledger.effects) >= effects, self.fleet.told)

    def begun(self, execution_ids: Sequence[str]) -> None:
        """Each of them has begun an effect."""
        until(lambda: all(map(self.effects_of, execution_ids)), self.fleet.told)

    def there(self, worker: Member) -> None:
        """The servers know this worker."""

        def known(client: Client) -> bool:
            return any(one.pid == worker.running.pid for one in client.runtime().workers)

        until(lambda: self.fleet.ask(known), self.fleet.told)

    def ended(self, execution_id: str) -> Summary:
        late = time.monotonic() + PATIENCE
        while True:
            found: Summary = self.fleet.ask(lambda client: client.summary(execution_id, wait=5.0))
            if found.status in OVER:
                return found
            assert time.monotonic() < late, f"{execution_id} does not end: {self.why(execution_id)}"

    def all_ended(self, execution_ids: Sequence[str]) -> Counter[str]:
        return Counter(self.ended(one).status for one in execution_ids)

    def why(self, execution_id: str) -> str:
        """How all stand, what this one waits for, and what the members said last."""
        standing = self.fleet.ask(lambda client: client.standing(execution_id))
        return f"{dict(self.standings())}\n{standing}\n{self.fleet.told()}"

    def standings(self, at: Member | None = None) -> Counter[str]:
        """Status → how many executions, children included."""
        return self.ask(standings_of, at)

    def times(self) -> Counter[int]:
        """How often effects were asked for → how many of them."""
        return Counter(Counter(self.ledger.effects).values())

    def effects_of(self, execution_id: str) -> int:
        return sum(key.startswith(f"{execution_id}-") for key, _ in self.ledger.effects)

    def log(self, execution_id: str) -> list[Event]:
        return self.fleet.ask(partial(log_of, execution_id))

    def judged(self) -> Logs:
        """Every log of the fleet, after the oracle has looked at it."""
        return judge_fleet(self.fleet, self.ledger.effects)


def standings_of(client: Client) -> Counter[str]:
    pages = client.pages(client.executions, limit=PAGE)
    return Counter(one.status for page in pages for one in page.executions)


def _register(text: str, client: Client) -> None:
    client.register(text)


def _start(asked: list[KeyedRequest], client: Client) -> list[str]:
    begun = client.start_many(asked).executions
    assert [one.error for one in begun if one.error] == []
    return [one.execution.execution_id for one in begun if one.execution is not None]


@contextmanager
def trial(folder: Path, database: Database, queue: str, **settings: str) -> Iterator[Trial]:
    """A fleet without members yet, with the lease time of this size of test."""
    given = {"NOETL_LEASE_TTL": f"{LEASE:g}", **settings}
    with keeping() as ledger, sailing(folder, database, queue, **given) as fleet:
        yield Trial(fleet, ledger)
        ledger.open.set()


def paused(member: Member) -> None:
    member.running.tell(signal.SIGSTOP)


def woken(member: Member) -> None:
    member.running.tell(signal.SIGCONT)
