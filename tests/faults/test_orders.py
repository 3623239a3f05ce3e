"""Orders that were accepted take effect, whatever becomes of the owner meanwhile (T24)."""

import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from tests.support.fleet import Member
from tests.support.nats import NatsServer
from tests.support.oracle import Logs, ends
from tests.support.postgres import Database
from tests.support.trial import PATIENCE, Trial, one_task, paused, sized, trial, until, woken

from noetl.client.client import Client
from noetl.messages.requests import Order

MANY = sized(150, 300)
AT_ONCE = 16
ENDS = pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"]
)


def two_servers(fleet: Trial) -> tuple[Member, Member, list[str]]:
    """The owner of many executions that wait for a worker, and one that owns nothing."""
    owner = fleet.fleet.server()
    fleet.fleet.ready()
    fleet.register(one_task())
    begun = fleet.start("one", *[{}] * MANY, at=owner)
    other = fleet.fleet.server()
    fleet.fleet.ready()
    return owner, other, begun


def order_all(fleet: Trial, begun: Sequence[str], kind: Order, other: Member) -> None:
    """Each order is accepted by a server that does not own the execution."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        orders = [pool.submit(fleet.ask, partial(ordered, one, kind), other) for one in begun]
        for order in orders:
            order.result()


def ordered(execution_id: str, kind: Order, client: Client) -> None:
    client.order(execution_id, kind)


def order_while_it_ends(
    fleet: Trial,
    begun: Sequence[str],
    kind: Order,
    servers: tuple[Member, Member],
    obeyed: Callable[[], bool],
    number: signal.Signals,
) -> None:
    """The owner finds many orders at once, obeys the first of them, and ends."""
    owner, other = servers
    fleet.fleet.servers.remove(owner)
    paused(owner)
    order_all(fleet, begun, kind, other)
    woken(owner)
    until(obeyed, fleet.fleet.told)
    owner.running.tell(number)
    owner.running.waits(PATIENCE)


def named(logs: Logs, name: str) -> int:
    """How many executions have an event of this name."""
    return sum(any(event["name"] == name for event in events) for events in logs.values())


@pytest.mark.fault("T24")
@ENDS
def test_every_accepted_cancel_takes_effect(
    number: signal.Signals, tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    with trial(tmp_path, database, nats_server.url) as fleet:
        owner, other, begun = two_servers(fleet)
        order_while_it_ends(
            fleet,
            begun,
            "cancel",
            (owner, other),
            lambda: fleet.standings()["cancelled"] > 0,
            number,
        )
        assert fleet.all_ended(begun) == {"cancelled": MANY}
        assert ends(fleet.judged()) == {("cancelled", None): MANY}
        assert fleet.ledger.effects == []


@pytest.mark.fault("T24")
@ENDS
def test_every_accepted_resume_takes_effect(
    number: signal.Signals, tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    with trial(tmp_path, database, nats_server.url) as fleet:
        owner, other, begun = two_servers(fleet)
        order_all(fleet, begun, "pause", other)
        until(lambda: fleet.standings()["paused"] == MANY, fleet.fleet.told)
        order_while_it_ends(
            fleet, begun, "resume", (owner, other), lambda: fleet.standings()["running"] > 0, number
        )
        fleet.fleet.worker()
        assert fleet.all_ended(begun) == {"completed": MANY}
        logs = fleet.judged()
        assert named(logs, "execution.paused") == named(logs, "execution.resumed")
        assert fleet.times() == {1: MANY}
