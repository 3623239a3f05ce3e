"""Cancel at any moment of a start: everything below ends, and nothing begins afterwards (T25)."""

import os
import random
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from tests.support.nats import NatsServer
from tests.support.oracle import ends
from tests.support.postgres import Database
from tests.support.proxy import between
from tests.support.steps import Tree, loop, step, task
from tests.support.trial import Trial, lasting, one_task, passes, sized, trial, until, written

from noetl.client.client import Client

PARENTS = sized(24, 120)
CHILDREN = 4
LONG = 40.0
"""Seconds that a child takes, if it is not cancelled."""
SPREAD = 0.08
"""Seconds between two cancels, at the most."""
MARK = "mark-of-the-fetched-playbook"

CHILD = written("child", step("start", lasting("work", LONG)))


def parent(*, wait: bool) -> str:
    """Starts children at once, and lasts as long as they do."""
    begins = task(
        "child", "playbook", path="tests/child", args={"url": "{{ workload.url }}"}, wait=wait
    )
    tasks: list[Tree] = [begins] if wait else [begins, lasting("stays", LONG)]
    many = loop(list(range(CHILDREN)), mode="parallel", flight=CHILDREN)
    return written("parent", step("start", *tasks, loop=many))


def cancelled(execution_id: str, client: Client) -> None:
    client.order(execution_id, "cancel")


@pytest.mark.fault("T25")
@pytest.mark.parametrize("wait", [True, False], ids=["waited for", "let go"])
def test_whoever_is_cancelled_leaves_no_child_behind(
    wait: bool, tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    seed = int(os.environ.get("NOETL_TEST_SEED", random.randrange(1_000_000)))
    print(f"NOETL_TEST_SEED={seed}")
    chance = random.Random(seed)
    with trial(tmp_path, database, nats_server.url) as fleet:
        fleet.crew(2, 2)
        fleet.register(CHILD, parent(wait=wait))
        parents = fleet.start("parent", *[{}] * PARENTS)
        for one in chance.sample(parents, PARENTS):
            Event().wait(chance.random() * SPREAD)
            fleet.fleet.ask(partial(cancelled, one), chance)
        assert fleet.all_ended(parents) == {"cancelled": PARENTS}
        nothing_is_left(fleet)


def nothing_is_left(fleet: Trial) -> None:
    """Everything has ended by the cancel, not by itself, and nothing comes after it."""
    until(lambda: "running" not in fleet.standings(), fleet.fleet.told)
    before, begun = fleet.standings(), len(fleet.ledger.effects)
    print(f"executions: {dict(before)}, effects: {begun}")
    assert set(before) == {"cancelled"}
    assert before.total() > PARENTS, "some children had begun"
    passes(1)
    assert fleet.standings() == before
    assert len(fleet.ledger.effects) == begun
    assert fleet.ledger.ended == []
    assert set(ends(fleet.judged())) == {("cancelled", None)}


@pytest.mark.fault("T25")
def test_a_worker_that_still_fetches_the_playbook_does_not_begin(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    """The order comes before the playbook does."""
    with trial(tmp_path, database, nats_server.url) as fleet:
        fleet.crew(1, 0)
        (server,) = fleet.fleet.servers
        fleet.register(one_task(description=MARK))
        assert server.url is not None
        with between(int(server.url.rpartition(":")[2])) as line:
            line.hold_back(MARK.encode())
            fleet.fleet.worker("--server", f"http://127.0.0.1:{line.port}")
            (begun,) = fleet.start("one", {"seconds": LONG})
            until(line.struck.is_set, fleet.fleet.told)
            fleet.ask(partial(cancelled, begun))
            line.fix()
            assert fleet.ended(begun).status == "cancelled"
            fresh = fleet.start("one", {})
            assert fleet.all_ended(fresh) == {"completed": 1}
        fleet.judged()
        assert fleet.effects_of(begun) == 0
