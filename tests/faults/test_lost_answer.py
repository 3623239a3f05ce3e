"""The commit arrives, its answer does not, and the database stays away (T23)."""

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.support.fleet import Member
from tests.support.nats import NatsServer
from tests.support.postgres import Database
from tests.support.proxy import Proxy, between
from tests.support.trial import PATIENCE, Trial, one_task, sized, trial, until

KEY = "asked-again"
MARK = "mark-of-the-lost-answer"
"""Stands in what is committed, and in no question before it."""
Answer = tuple[int, dict[str, Any]]


def post(server: Member, path: str, body: Any, **headers: str) -> Answer:
    """As any client would: status and body."""
    assert server.url is not None, "a server has an address"
    host, _, port = server.url.removeprefix("http://").partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
    try:
        given = {"Content-Type": "application/json", **headers}
        connection.request("POST", path, json.dumps(body), given)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def asked(server: Member, payload: dict[str, Any]) -> Answer:
    body = {"path": "tests/one", "payload": payload}
    return post(server, "/api/executions", body, **{"Idempotency-Key": KEY})


def is_not_known(answer: Answer) -> None:
    """The client is told that it may have happened, not that it did not."""
    status, body = answer
    error = body["error"]
    said = f"{error['code']} {error['message']} {error.get('hint', '')}"
    assert status == 503, said
    assert "nothing was changed" not in said
    assert "known" in error["code"], said


@contextmanager
def answering(ask: Callable[[], Answer]) -> Iterator[list[Answer]]:
    """A client that waits for its answer meanwhile."""
    heard: list[Answer] = []
    thread = Thread(target=lambda: heard.append(ask()), daemon=True)
    thread.start()
    yield heard
    thread.join(PATIENCE)


def loses_the_answer(fleet: Trial, line: Proxy, ask: Callable[[], Answer]) -> Answer:
    """The first answer of a question whose commit arrived; the database is away until then."""
    line.break_at_commit_of(MARK.encode())
    with answering(ask) as heard:
        until(line.struck.is_set, fleet.fleet.told)
        until(lambda: bool(heard), fleet.fleet.told)
    line.fix()
    return heard[0]


@pytest.mark.fault("T23")
@pytest.mark.parametrize("servers", sized([1], [1, 2]))
def test_a_start_whose_answer_is_lost_is_asked_again_and_runs(
    servers: int, tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    with trial(tmp_path, database, nats_server.url) as fleet, between(database.port) as line:
        server = fleet.fleet.server(NOETL_DB=database.at(line.port).url)
        fleet.crew(servers - 1, 1)
        fleet.register(one_task(workload={"url": "", "seconds": 0, "mark": ""}))
        payload = {"url": fleet.ledger.url, "mark": MARK}
        is_not_known(loses_the_answer(fleet, line, lambda: asked(server, payload)))
        again = settled(fleet, lambda: asked(server, payload))
        assert asked(server, payload)[1]["execution_id"] == again["execution_id"]
        assert fleet.ended(again["execution_id"]).status == "completed"
        assert list(fleet.judged()) == [again["execution_id"]]
        assert fleet.times() == {1: 1}


@pytest.mark.fault("T23")
def test_a_cancel_whose_answer_is_lost_takes_effect_once(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    with trial(tmp_path, database, nats_server.url) as fleet, between(database.port) as line:
        server = fleet.fleet.server(NOETL_DB=database.at(line.port).url)
        fleet.crew(0, 1)
        fleet.register(one_task())
        (begun,) = fleet.start("one", {"seconds": sized(60, 300)})
        fleet.begun([begun])
        cancel = f"/api/executions/{begun}/cancel"
        lost = loses_the_answer(fleet, line, lambda: post(server, cancel, {"reason": MARK}))
        is_not_known(lost)
        assert fleet.ended(begun).status == "cancelled"
        (events,) = fleet.judged().values()
        orders = [event for event in events if event["name"] == "execution.cancelled"]
        assert len(orders) == 1


def settled(fleet: Trial, ask: Callable[[], Answer]) -> dict[str, Any]:
    """The first answer that is no 503: the database is there again."""
    found: list[Answer] = []

    def answered() -> bool:
        found.append(ask())
        return found[-1][0] != 503

    until(answered, fleet.fleet.told)
    status, body = found[-1]
    assert status in (200, 201), body
    return body
