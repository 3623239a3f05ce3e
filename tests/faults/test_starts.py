"""A server dies while something starts: every occurrence starts one execution, and none is lost."""

import asyncio
import base64
import json
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import nats
import pytest
from tests.support.fleet import Member
from tests.support.nats import NatsServer
from tests.support.postgres import Database
from tests.support.proxy import Proxy, between
from tests.support.steps import step
from tests.support.trial import Trial, lasting, trial, until, written
from tests.support.triggers import trigger

from noetl.api.signatures import signature
from noetl.client.client import Client
from noetl.errors import NoetlError

KEY = {"NOETL_KEY": base64.b64encode(b"k" * 32).decode()}
"""Of the whole fleet, as in every deployment."""
SECRET = "whsec-4711-of-the-shop"
MARK = "mark-of-the-start"
"""Stands in what is committed, and in no question before it."""
KILLS = 4
FEW = written("order", step("start", lasting("work", 0)), workload={"url": "", "mark": ""})


def started_by(on: dict[str, Any], url: str, mark: str = MARK) -> str:
    """A trigger of the playbook above, which is told where the ledger is."""
    payload = {"url": url, "mark": mark}
    return trigger(on, path="tests/started", playbook="tests/order", payload=payload)


def doomed_beside(fleet: Trial, line: Proxy, database: Database) -> Member:
    """A server that reaches the database over a line of its own, another one, and a worker."""
    doomed = fleet.fleet.server(NOETL_DB=database.at(line.port).url)
    fleet.crew(1, 1)
    return doomed


def begun(fleet: Trial) -> list[str]:
    def ids(client: Client) -> list[str]:
        rows = client.executions(path="tests/order", limit=200).executions
        return [one.execution_id for one in rows]

    return fleet.fleet.ask(ids)


def started_once(fleet: Trial, count: int = 1) -> None:
    """So many executions, each by an occurrence of its own, each with its one outcome."""
    until(lambda: len(begun(fleet)) >= count, fleet.fleet.told)
    assert fleet.all_ended(begun(fleet)) == {"completed": count}
    logs = fleet.judged()
    keys = Counter(events[0]["data"]["trigger"] for events in logs.values())
    assert (len(keys), set(keys.values())) == (count, {1})
    assert len(set(fleet.ledger.effects)) == count


# ── webhooks ─────────────────────────────────────────────────────────────────────────────────


def call(moment: int, server: Member) -> str:
    """The same delivery each time: the id of what it started."""
    body = json.dumps({"id": 7}).encode()
    headers = {
        "content-type": "application/json",
        "x-noetl-timestamp": str(moment),
        "x-noetl-signature": signature(SECRET, "tests/started", body, moment),
    }
    url = f"{server.url}/hooks/tests/started"
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=90) as answer:
        return str(json.load(answer)["execution"]["execution_id"])


def unanswered(what: Callable[[Member], Any], server: Member) -> Thread:
    """Asked of a server that dies before it can answer."""

    def ask() -> None:
        try:
            what(server)
        except (NoetlError, OSError):
            return
        raise AssertionError("a server that is dead has answered")

    asking = Thread(target=ask, daemon=True)
    asking.start()
    return asking


@pytest.mark.rule("START-2", "START-4")
@pytest.mark.parametrize("committed", [False, True], ids=["before", "after"])
def test_a_server_that_dies_around_the_commit_of_a_call(
    committed: bool, tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    hook = {"webhook": {"scheme": "noetl", "credential": "shop"}}
    with trial(tmp_path, database, nats_server.url, **KEY) as fleet, between(database.port) as line:
        doomed = doomed_beside(fleet, line, database)
        fleet.ask(lambda client: client.put_credential("shop", "generic", {"secret": SECRET}))
        fleet.register(FEW, started_by(hook, fleet.ledger.url))
        moment = int(time.time())
        if committed:
            line.break_at_commit_of(MARK.encode())
        else:
            line.hold_back(b"tests/started")  # it has not read the trigger yet
        fleet.fleet.servers.remove(doomed)
        asking = unanswered(partial(call, moment), doomed)
        until(line.struck.is_set, fleet.fleet.told)
        doomed.kill()
        asking.join()
        (other,) = fleet.fleet.servers
        first = call(moment, other)
        assert call(moment, other) == first
        assert begun(fleet) == [first]
        started_once(fleet)


# ── messages ─────────────────────────────────────────────────────────────────────────────────


async def publish(url: str, count: int) -> None:
    client = await nats.connect(url)
    line = client.jetstream()
    await line.add_stream(name="DOOMED", subjects=["doomed.>"])
    for number in range(count):
        await line.publish("doomed.new", json.dumps({"id": number}).encode())
    await client.close()


@pytest.mark.rule("START-2", "START-5")
def test_a_server_that_dies_between_commit_and_acknowledgement(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    """The message comes again, to the other server, and finds that it was started."""
    on = {"subject": {"subject": "doomed.new", "stream": "DOOMED"}}
    with trial(tmp_path, database, nats_server.url) as fleet, between(database.port) as line:
        doomed = fleet.fleet.server(NOETL_DB=database.at(line.port).url)
        fleet.fleet.worker()
        fleet.fleet.ready()
        fleet.register(FEW, started_by(on, fleet.ledger.url))
        line.break_at_commit_of(MARK.encode())
        asyncio.run(publish(nats_server.url, 5))
        until(line.struck.is_set, fleet.fleet.told)
        fleet.fleet.server()
        doomed.kill()
        fleet.fleet.servers.remove(doomed)
        fleet.fleet.ready()
        started_once(fleet, 5)


# ── planned times ────────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("START-2", "START-3")
def test_a_server_that_dies_during_a_backfill(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    """Asked for again, it starts what was missing and nothing twice."""
    on = {"schedule": {"cron": "0 3 * * *", "timezone": "Europe/Berlin"}}
    third = "2026-03-03T02:00:00"
    range_ = ("tests/started", "2026-03-01", "2026-03-05T12:00:00Z")
    with trial(tmp_path, database, nats_server.url) as fleet, between(database.port) as line:
        doomed = doomed_beside(fleet, line, database)
        fleet.register(FEW, started_by(on, fleet.ledger.url, "{{ trigger.at }}"))
        line.break_at_commit_of(third.encode())
        fleet.fleet.servers.remove(doomed)
        fill = partial(fleet.ask, lambda client: client.backfill(*range_, dry_run=False))
        asking = unanswered(lambda server: fill(server), doomed)
        until(line.struck.is_set, fleet.fleet.told)
        doomed.kill()
        asking.join()
        for _ in range(2):
            fill(fleet.fleet.servers[0])
        started_once(fleet, 5)


# ── the end of another execution ─────────────────────────────────────────────────────────────


def told_of(fleet: Trial) -> str:
    row = fleet.fleet.ask(lambda client: client.trigger("tests/started"))
    return f"{len(begun(fleet))} begun; {row}\n{fleet.fleet.told()}"


def are_begun(fleet: Trial, count: int) -> bool:
    return len(begun(fleet)) >= count


@pytest.mark.rule("START-2", "START-6")
def test_servers_that_die_neither_lose_nor_double_an_end(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    """Each end starts one, although whoever commits ends and looks at them is killed meanwhile."""
    ends = written("ends", step("start", lasting("work", 0)))
    on = {"execution": {"path": "tests/ends", "status": "completed"}}
    with trial(tmp_path, database, nats_server.url) as fleet:
        fleet.crew(2, 2)
        fleet.register(ends, FEW, started_by(on, fleet.ledger.url))
        ids: list[str] = []
        for number in range(KILLS):
            ids += fleet.start("ends", *[{} for _ in range(5)])
            until(partial(are_begun, fleet, 5 * number + 1), partial(told_of, fleet))
            fleet.fleet.servers[number % 2].again()
            fleet.fleet.workers[number % 2].again()
        assert fleet.all_ended(ids) == {"completed": 5 * KILLS}
        until(partial(are_begun, fleet, 5 * KILLS), partial(told_of, fleet))
        ended = [fleet.ended(one) for one in begun(fleet)]
        assert [one.error for one in ended if one.status != "completed"] == []
        logs = fleet.judged()
        keys = Counter(logs[one][0]["data"]["trigger"] for one in begun(fleet))
        assert keys == Counter(f"trigger/tests/started/{one}" for one in ids)
