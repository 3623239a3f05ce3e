"""A server that has lost what it owned, and does not know it yet, hands nothing out (T22)."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.support.fleet import Member
from tests.support.nats import NatsServer
from tests.support.oracle import losses
from tests.support.postgres import Database
from tests.support.proxy import Proxy, between
from tests.support.trial import Trial, one_task, passes, paused, sized, trial, until, woken

from noetl.errors import NoetlError

MANY = sized(80, 200)
Fault = tuple[Callable[[], None], Callable[[], None]]
"""How it begins, and how it ends."""

FAULTS: dict[str, Callable[[Member, Proxy], Fault]] = {
    "paused": lambda server, _: (partial(paused, server), partial(woken, server)),
    "cut off from the database": lambda _, line: (line.cut, line.fix),
}


@pytest.mark.fault("T22")
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_stale_owner_runs_nothing_again(
    fault: Callable[[Member, Proxy], Fault],
    tmp_path: Path,
    database: Database,
    nats_server: NatsServer,
) -> None:
    with trial(tmp_path, database, nats_server.url) as fleet, between(database.port) as line:
        stale = fleet.fleet.server(NOETL_DB=database.at(line.port).url)
        fleet.fleet.ready()
        strikes, is_over = fault(stale, line)
        fleet.register(one_task())
        asleep = worker_that_sleeps(fleet, stale)
        begun = fleet.start("one", *[{}] * MANY, at=stale)
        strikes()
        passes(1.5)
        completed_by_another(fleet, stale, begun)
        woken(asleep)
        passes(0.5)
        is_over()
        until(lambda: is_ready(fleet, stale), fleet.fleet.told)
        hands_out_nothing(fleet, stale)


def worker_that_sleeps(fleet: Trial, server: Member) -> Member:
    """It is known to the server, and asks for work as soon as it wakes."""
    assert server.url is not None, "a server has an address"
    worker = fleet.fleet.worker("--server", server.url)
    fleet.there(worker)
    paused(worker)
    return worker


def completed_by_another(fleet: Trial, stale: Member, begun: list[str]) -> None:
    """A second server takes all of it over; then a worker asks everybody for more."""
    fleet.fleet.servers.remove(stale)
    fleet.crew(1, 1)
    assert fleet.all_ended(begun) == {"completed": MANY}
    assert fleet.times() == {1: MANY}
    fleet.there(fleet.fleet.worker())


def hands_out_nothing(fleet: Trial, stale: Member) -> None:
    """What is recorded is not run again; what is new is."""
    fleet.fleet.servers.append(stale)
    passes(2)
    fresh = fleet.start("one", {}, at=stale)
    assert fleet.all_ended(fresh) == {"completed": 1}
    logs = fleet.judged()
    assert len(fleet.ledger.effects) == MANY + 1
    assert losses(logs) == 0


def is_ready(fleet: Trial, server: Member) -> bool:
    try:
        fleet.ask(lambda client: client.ready(), server)
    except NoetlError:
        return False
    return True
