"""A server dies while it restarts an execution: the same key settles it, and it runs once (RST)."""

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
from tests.support.trial import Trial, trial, until, written

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
