"""Whoever dies while something waits takes nothing with it: a wait is a line in the log."""

import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.support.fleet import Member
from tests.support.nats import NatsServer
from tests.support.oracle import losses
from tests.support.postgres import Database
from tests.support.steps import arc, loop, nested, otherwise, step
from tests.support.trial import LEASE, Trial, lasting, trial, until, written
from tests.support.waiting import waits

from noetl.client.client import Client

BRANCHES = {
    "rest": waits("w", seconds=5 * LEASE),
    "late": waits("w", otherwise(), signal="never", timeout=5 * LEASE),
    "hear": waits("w", signal="go"),
    "ask": waits("w", approval={"title": "Go?", "form": {"n": "integer"}}),
    "race": waits("w", any={"told": {"signal": "tell"}, "late": {"seconds": 3600}}),
}
TEXT = written(
    "waits",
    step("start", arcs=[arc(name) for name in [*BRANCHES, "many", "inner"]], mode="inclusive"),
    *(step(name, wait, lasting("work", 0)) for name, wait in BRANCHES.items()),
    step(
        "many", waits("w", signal="each"), lasting("work", 0), loop=loop([1, 2, 3], mode="parallel")
    ),
    step(
        "inner",
        nested("each", loop([1, 2], iterator="m", mode="parallel"), waits("w", signal="nested")),
        lasting("work", 0),
    ),
)
WAITING = 10
EFFECTS = 9
"""One for each branch, three for the loop, one for the nested loop."""


def waiting(fleet: Trial, execution_id: str) -> int:
    def count(client: Client) -> int:
        kinds = ("timer", "signal", "approval", "any")
        return sum(one.kind in kinds for one in client.standing(execution_id).waits)

    return fleet.ask(count)


def answered(execution_id: str, client: Client) -> None:
    for name in ("go", "tell", *["each"] * 3, *["nested"] * 2):
        client.signal(execution_id, name, {"n": 1})
    client.answer(execution_id, "ask", approved=True, fields={"n": 1})


def everybody_dies(fleet: Trial, owner: Member, worker: Member) -> None:
    server_dies(fleet, owner, worker)
    worker_dies(fleet, owner, worker)


def server_dies(fleet: Trial, owner: Member, worker: Member) -> None:
    del worker
    owner.running.tell(signal.SIGKILL)
    owner.running.waits(60.0)
    fleet.fleet.servers.remove(owner)


def worker_dies(fleet: Trial, owner: Member, worker: Member) -> None:
    del owner
    worker.kill()
    fleet.fleet.workers.remove(worker)
    fleet.there(fleet.fleet.worker())


@pytest.mark.parametrize("dies", [server_dies, worker_dies, everybody_dies])
def test_no_wait_is_lost_or_done_twice(
    dies: Callable[[Trial, Member, Member], None],
    tmp_path: Path,
    database: Database,
    nats_server: NatsServer,
) -> None:
    with trial(tmp_path, database, nats_server.url) as fleet:
        owner = fleet.fleet.server()
        worker = fleet.fleet.worker()
        fleet.fleet.ready()
        fleet.register(TEXT)
        (begun,) = fleet.start("waits", {}, at=owner)
        until(lambda: waiting(fleet, begun) == WAITING, fleet.fleet.told)
        other = fleet.fleet.server()
        fleet.fleet.ready()
        dies(fleet, owner, worker)
        fleet.ask(partial(answered, begun), other)  # whoever owns it now
        assert fleet.ended(begun).status == "completed"
        logs = fleet.judged()
        names = [event["name"] for event in logs[begun]]
        assert (names.count("wait.started"), names.count("wait.done")) == (WAITING, WAITING)
        assert fleet.times() == {1: EFFECTS}
        assert losses(logs) == 0
