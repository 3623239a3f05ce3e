"""Whoever dies while an execution is restarted: the same key settles it, and it runs once (RST)."""

from collections import Counter
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.support.fleet import Member
from tests.support.nats import NatsServer
from tests.support.postgres import Database
from tests.support.proxy import between
from tests.support.steps import arc, loop, step, task, when
from tests.support.trial import LEASE, Trial, lasting, trial, until, written

from noetl.client.client import Client
from noetl.errors import NoetlError

KEY = "restarted-again"
MARK = "mark-of-the-restart"
"""Stands in what is committed, and in no question before it."""
OLD = "mark-of-the-old-one"
"""Stands in the log that is read for the restart."""


def effect(label: str, value: Any, fail: Any) -> Any:
    body = {"value": value, "attempt": "{{ _attempt }}", "fail": fail}
    given = {"url": "{{ workload.url }}/effect", "method": "POST", "body": body}
    return task(label, "http", when("outcome.status == 'error'", "fail"), **given)


TEXT = written(
    "again",
    step("start", effect("first", "first", 0), arcs=[arc("load")]),
    step(
        "load",
        effect("each", "{{ iter.n }}", "{{ workload.fails if iter.n == 2 else 0 }}"),
        loop=loop([1, 2, 3], mode="parallel", flight=3),
        arcs=[arc("end")],
    ),
    step("end", effect("last", "last", 0)),
    workload={"url": "", "fails": 1, "mark": ""},
)


def restart(origin: str, client: Client) -> str:
    payload = {"fails": 0, "mark": MARK}
    return client.restart(origin, payload=payload, key=KEY).execution_id


def tried(fleet: Trial, origin: str, server: Member) -> None:
    """The server dies before it can answer."""
    try:
        fleet.ask(partial(restart, origin), server)
    except (NoetlError, OSError):
        return
    raise AssertionError("a server that is dead has answered")


@pytest.mark.rule("RST-2", "RST-3")
@pytest.mark.parametrize("committed", [False, True], ids=["before", "after"])
def test_a_server_that_dies_around_the_commit_of_a_restart(
    committed: bool, tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    with trial(tmp_path, database, nats_server.url) as fleet, between(database.port) as line:
        doomed = fleet.fleet.server(NOETL_DB=database.at(line.port).url)
        fleet.crew(1, 1)
        fleet.register(TEXT)
        (old,) = fleet.start("again", {"mark": OLD})
        assert fleet.ended(old).status == "failed"
        if committed:
            line.break_at_commit_of(MARK.encode())
        else:
            line.hold_back(OLD.encode())
        fleet.fleet.servers.remove(doomed)
        asking = Thread(target=tried, args=(fleet, old, doomed), daemon=True)
        asking.start()
        until(line.struck.is_set, fleet.fleet.told)
        doomed.kill()
        asking.join()
        again = fleet.fleet.ask(partial(restart, old))
        assert fleet.fleet.ask(partial(restart, old)) == again
        assert fleet.ended(again).status == "completed"
        logs = fleet.judged()
        assert set(logs) == {old, again}
        assert sorted(map(str, fleet.ledger.values)) == ["1", "2", "2", "3", "first", "last"]
        verified = fleet.fleet.ask(lambda client: client.verified(again))
        assert verified.ok, verified.message


SLOW = written(
    "slow",
    step("start", effect("first", "first", 0), arcs=[arc("load")]),
    step(
        "load",
        effect("each", "{{ iter.n }}", "{{ workload.fails if iter.n > 2 else 0 }}"),
        lasting("rest", "{{ workload.seconds }}", value="rest {{ iter.n }}"),
        loop=loop([1, 2, 3, 4], mode="parallel", on_failure="continue"),
        arcs=[arc("end")],
    ),
    step("end", effect("last", "last", 0)),
    workload={"url": "", "fails": 1, "seconds": 0},
)


@pytest.mark.rule("RST-1", "RST-3")
@pytest.mark.parametrize("who", ["server", "worker"])
def test_a_restart_goes_on_although_whoever_runs_it_dies(
    who: str, tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    """What the old execution had recorded is not run again, in whichever life."""
    with trial(tmp_path, database, nats_server.url) as fleet:
        fleet.crew(1, 1)
        (owner,), (worker,) = fleet.fleet.servers, fleet.fleet.workers
        fleet.register(SLOW)
        (old,) = fleet.start("slow", {})
        assert fleet.ended(old).status == "completed"
        payload = {"fails": 0, "seconds": 5 * LEASE}
        done = len(fleet.ledger.effects)  # before it is asked for: it may begin before the answer
        again = fleet.ask(
            lambda client: client.restart(old, chosen=["load:2,3"], payload=payload).execution_id
        )
        fleet.came(done + 4)  # both have failed no more, and rest
        fleet.fleet.server()
        fleet.fleet.ready()
        if who == "server":
            owner.kill()
            fleet.fleet.servers.remove(owner)
        else:
            worker.kill()
            fleet.fleet.workers.remove(worker)
            fleet.there(fleet.fleet.worker())
        fleet.ledger.open.set()
        assert fleet.ended(again).status == "completed"
        fleet.judged()
        told = Counter(map(str, fleet.ledger.values))
        rests = 1 + (who == "worker")
        kept = dict.fromkeys(["first", "1", "2", "rest 1", "rest 2"], 1)
        repeated = {"3": 2, "4": 2, "last": 2, "rest 3": rests, "rest 4": rests}
        assert told == kept | repeated
