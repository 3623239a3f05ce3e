"""T16 on real processes: a limit is never exceeded and forgets nobody, whoever is killed."""

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.support.fleet import Member
from tests.support.nats import NatsServer
from tests.support.oracle import Logs
from tests.support.postgres import Database
from tests.support.steps import Tree, step
from tests.support.trial import Passing, Trial, lasting, sized, trial, until, written

AT_ONCE = 4
STARTS = sized(60, 500)
KILLS = 3
LASTS = 0.02
"""Seconds of one piece of work."""
KNOWN_WITHIN = 2.5
"""Seconds until every server knows the limit of a pool: two (LIMIT-1), and some to spare."""


def by_execution() -> str:
    spec = {"limit": {"at_once": AT_ONCE}}
    return written("limited", step("start", lasting("work", 0)), executor={"spec": spec})


def by_step() -> str:
    return written("limited", step("start", lasting("work", 0), limit={"at_once": AT_ONCE}))


def by_pool() -> str:
    return written("limited", step("start", lasting("work", 0)))


class Crowd:
    """
    Which executions are at work, as the world sees it, and how many at most. Whoever comes leaves
    before it is answered: afterwards its place may be given to the next at once.
    """

    def __init__(self, fleet: Trial) -> None:
        self._ledger = fleet.ledger
        self._inside: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._never = threading.Event()
        self.most = 0
        self._ledger.came = self._stays

    def _stays(self, number: int) -> None:
        execution_id = self._ledger.effects[number - 1][0].partition("-")[0]
        with self._lock:
            self._inside[execution_id] += 1
            self.most = max(self.most, len(+self._inside))
        self._never.wait(LASTS)
        with self._lock:
            self._inside[execution_id] -= 1


def most_at_once(logs: Logs, begins: str, ends: str) -> int:
    """By the log: how many were between these two events at the same time."""
    moments = sorted(
        (event["timestamp"], by)
        for events in logs.values()
        for event in events
        for by in [{ends: -1, begins: 1}.get(event["name"], 0)]
        if by
    )
    now = most = 0
    for _, by in moments:
        now += by
        most = max(most, now)
    return most


def have_ended(fleet: Trial, count: int) -> bool:
    return len(fleet.ledger.ended) >= count


def killed_by_turns(fleet: Trial, members: list[Member]) -> None:
    """One after the other is killed and begins again, each after some of the work was done."""
    for number in range(KILLS):
        wanted = len(fleet.ledger.ended) + STARTS // 8
        until(partial(have_ended, fleet, wanted), fleet.fleet.told)
        members[number % len(members)].again()


@pytest.mark.fault("T16")
@pytest.mark.rule("LIMIT-1", "LIMIT-3")
@pytest.mark.parametrize("text", [by_execution, by_step, by_pool])
def test_starts_against_four_places_while_servers_and_workers_die(
    text: Callable[[], str], tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    with trial(tmp_path, database, nats_server.url) as fleet:
        crowd = Crowd(fleet)
        fleet.crew(2, 2)
        fleet.register(text())
        if text is by_pool:
            fleet.ask(lambda client: client.set_pool("default", AT_ONCE))
            until(Passing(KNOWN_WITHIN))
        payloads: list[Tree] = [{} for _ in range(STARTS // 2)]
        begun = [
            one for at in fleet.fleet.servers for one in fleet.start("limited", *payloads, at=at)
        ]
        servers, workers = fleet.fleet.servers, fleet.fleet.workers
        killed_by_turns(fleet, [servers[0], workers[0], servers[1]])
        assert fleet.all_ended(begun) == {"completed": STARTS}, "none is forgotten"
        logs = fleet.judged()
        assert set(logs) == set(begun)
        assert crowd.most <= AT_ONCE
        if text is by_execution:
            assert most_at_once(logs, "execution.admitted", "workflow.finished") <= AT_ONCE
