"""Whoever dies while something waits takes nothing with it: a wait is a line in the log."""

import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.fleet import Member
from tests.support.nats import NatsServer
from tests.support.oracle import losses
from tests.support.postgres import Database
from tests.support.steps import Tree, arc, loop, nested, otherwise, step
from tests.support.trial import LEASE, Trial, lasting, trial, until, written
from tests.support.waiting import waits

from noetl.client.client import Client

KINDS: dict[str, dict[str, Any]] = {
    "seconds": {"seconds": 5 * LEASE},
    "until": {"until": "{{ workload.at }}"},
    "signal": {"signal": "go", "when": "{{ signal.data.n == 1 }}"},
    "approval": {"approval": {"title": "Go?", "form": {"n": "integer"}}},
    "any": {"any": {"told": {"signal": "tell"}, "late": {"seconds": 3600}}},
    "timeout": {"signal": "never", "timeout": 5 * LEASE},
}
"""What can be awaited (WAIT-1)."""


def awaited(kind: str) -> list[Tree]:
    rules = (otherwise(),) if kind == "timeout" else ()
    return [waits("w", *rules, **KINDS[kind]), lasting("work", 0)]


def plain(kind: str) -> Tree:
    return step(f"plain_{kind}", *awaited(kind))


def looped(kind: str) -> Tree:
    return step(f"loop_{kind}", *awaited(kind), loop=loop([1, 2], mode="parallel"))


def inside(kind: str) -> Tree:
    inner = nested("each", loop([1, 2], iterator="m", mode="parallel"), *awaited(kind))
    return step(f"nested_{kind}", inner, loop=loop([1], mode="parallel"))


BRANCHES = [form(kind) for form in (plain, looped, inside) for kind in KINDS]
TEXT = written(
    "waits",
    step("start", arcs=[arc(branch["step"]) for branch in BRANCHES], mode="inclusive"),
    *BRANCHES,
    workload={"url": "", "at": ""},
)
OF_EACH = 5
"""Of each kind one waits in a plain step, two in a loop, two in a nested loop."""
WAITING = OF_EACH * len(KINDS)


def moment() -> str:
    return (datetime.now(UTC) + timedelta(seconds=5 * LEASE)).isoformat()


def waiting(fleet: Trial, execution_id: str) -> int:
    def count(client: Client) -> int:
        kinds = ("timer", "signal", "approval", "any")
        return sum(one.kind in kinds for one in client.standing(execution_id).waits)

    return fleet.ask(count)


def answered(execution_id: str, client: Client) -> None:
    for name in ["go", "tell"] * OF_EACH:
        client.signal(execution_id, name, {"n": 1})
    for wait in client.standing(execution_id).waits:
        if wait.kind == "approval":
            named = wait.answers[0].split()[
                3
            ]  # `noetl approve ID STEP …`, as the program itself tells it
            client.answer(execution_id, named, approved=True, fields={"n": 1})


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


@pytest.mark.rule("WAIT-2", "WAIT-3", "WAIT-4", "WAIT-5")
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
        (begun,) = fleet.start("waits", {"at": moment()}, at=owner)
        until(lambda: waiting(fleet, begun) == WAITING, fleet.fleet.told)
        other = fleet.fleet.server()
        fleet.fleet.ready()
        dies(fleet, owner, worker)
        fleet.ask(partial(answered, begun), other)  # whoever owns it now
        assert fleet.ended(begun).status == "completed"
        logs = fleet.judged()
        names = [event["name"] for event in logs[begun]]
        assert (names.count("wait.started"), names.count("wait.done")) == (WAITING, WAITING)
        assert names.count("wait.withdrawn") == OF_EACH
        assert fleet.times() == {1: WAITING}
        assert losses(logs) == 0


LOOPED: dict[str, Any] = {"start": {}, "many": {"loop": loop([1, 2], mode="parallel")}}


@pytest.mark.rule("WAIT-2", "TASK-9")
@pytest.mark.parametrize("dies", [server_dies, worker_dies])
def test_what_was_awaited_stands_although_whoever_goes_on_with_it_dies(
    dies: Callable[[Trial, Member, Member], None],
    tmp_path: Path,
    database: Database,
    nats_server: NatsServer,
) -> None:
    """The answer is committed, the work behind it has begun: the answer is not asked for again."""
    text = written(
        "goes-on",
        *(
            step(name, waits("w", **KINDS["signal"]), lasting("work", 5 * LEASE), **more)
            for name, more in LOOPED.items()
        ),
        step("begin", arcs=[arc("start"), arc("many")], mode="inclusive"),
        executor={"spec": {"entry_step": "begin"}},
    )
    with trial(tmp_path, database, nats_server.url) as fleet:
        owner, worker = fleet.fleet.server(), fleet.fleet.worker()
        fleet.fleet.ready()
        fleet.register(text)
        (begun,) = fleet.start("goes-on", {}, at=owner)
        until(lambda: waiting(fleet, begun) == 3, fleet.fleet.told)
        for _ in range(3):
            fleet.ask(lambda client: client.signal(begun, "go", {"n": 1}))
        fleet.came(3)
        fleet.fleet.server()
        fleet.fleet.ready()
        dies(fleet, owner, worker)
        fleet.ledger.open.set()
        assert fleet.ended(begun).status == "completed"
        names = [event["name"] for event in fleet.judged()[begun]]
        assert (names.count("wait.started"), names.count("wait.done")) == (3, 3)
        again = dies is worker_dies
        assert fleet.times() == {2 if again else 1: 3}, "only the work that was under way"
