"""A recorded secret is opened wherever the next step runs (KEY-3)."""

import base64
from pathlib import Path

import pytest
from tests.support.fleet import Member
from tests.support.nats import NatsServer
from tests.support.oracle import Event
from tests.support.postgres import Database
from tests.support.steps import arc, otherwise, step, task
from tests.support.trial import Trial, lasting, trial, until, written

SECRET = "opensesame-71a9"
KEY = {"NOETL_KEY": base64.b64encode(b"k" * 32).decode()}
"""Of the whole fleet, as in every deployment."""
RUNS = 6
READ = task(
    "read",
    "secrets",
    otherwise(set_ctx={"header": "Bearer {{ outcome.result }}"}),
    provider="environment",
    name="TESTS_SECRET",
)
TEXT = written(
    "secret",
    step("start", READ, arcs=[arc("use")]),
    step("use", lasting("tell", "{{ workload.seconds }}", value="{{ ctx.header }}")),
    workload={"url": "", "seconds": 0},
)


@pytest.fixture(params=["nats", "http"])
def queue(request: pytest.FixtureRequest) -> str:
    """Where workers are woken; none: they ask the server."""
    if request.param == "http":
        return ""
    server: NatsServer = request.getfixturevalue("nats_server")
    return server.url


def two_with_one_place(fleet: Trial) -> None:
    url = fleet.fleet.server().url
    for _ in range(2):
        fleet.fleet.worker("--concurrency", "1", TESTS_SECRET=SECRET, NOETL_SERVER=url or "")
    fleet.fleet.ready()
    for worker in fleet.fleet.workers:
        fleet.there(worker)
    fleet.register(TEXT)


def test_a_recorded_secret_is_used_by_whichever_worker_goes_on(
    tmp_path: Path, database: Database, queue: str
) -> None:
    with trial(tmp_path, database, queue, **KEY) as fleet:
        two_with_one_place(fleet)
        begun: list[str] = []

        def crossed() -> bool:
            """Whether one worker used what the other had recorded; who gets a step is by chance."""
            begun.extend(fleet.start("secret", *[{"seconds": 0.2}] * RUNS))
            assert fleet.all_ended(begun) == {"completed": len(begun)}
            logs = fleet.judged()
            assert fleet.ledger.values == [f"Bearer {SECRET}"] * len(begun)
            assert SECRET not in repr(logs)
            return any(len(set(holders(events).values())) == 2 for events in logs.values())

        until(crossed, fleet.fleet.told)


def test_a_recorded_secret_outlives_the_worker_that_recorded_it(
    tmp_path: Path, database: Database, queue: str
) -> None:
    with trial(tmp_path, database, queue, **KEY) as fleet:
        two_with_one_place(fleet)
        begun = fleet.start("secret", *[{"seconds": 4}] * 2)
        until(lambda: len(fleet.ledger.effects) >= 1, fleet.fleet.told)
        first = next(one for one in begun if fleet.effects_of(one))
        recorder(fleet, fleet.log(first)).kill()
        assert fleet.all_ended(begun) == {"completed": 2}
        fleet.judged()
        assert set(fleet.ledger.values) == {f"Bearer {SECRET}"}


def holders(events: list[Event]) -> dict[str, str]:
    """Step → the worker that had it last."""
    return {
        event["step"]: event["data"]["worker"]
        for event in events
        if event["name"] == "token.claimed"
    }


def recorder(fleet: Trial, events: list[Event]) -> Member:
    """The worker that ran the first step."""
    name = holders(events)["start"]
    known = fleet.ask(lambda client: client.runtime().workers)
    (pid,) = [one.pid for one in known if one.name == name]
    return next(one for one in fleet.fleet.workers if one.running.pid == pid)
