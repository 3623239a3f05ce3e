"""A server dies at a named point, a clock jumps, a playbook changes (T3, T9, T15)."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.support.canned import CannedTools, Silence
from tests.support.cluster import Cluster, clustered, until
from tests.support.direct_link import DirectLink
from tests.support.disturbed import effect, keep
from tests.support.fleet import PATIENCE, sailing
from tests.support.ledger import keeping
from tests.support.nats import NatsServer
from tests.support.postgres import Database
from tests.support.scenario import Gate, ok
from tests.support.steps import arc, call, playbook, step
from tests.system.test_fleet_deaths import ended, look_at, registered

from noetl.client.client import Client
from noetl.errors import ServerAway
from noetl.messages import events as e
from noetl.node.server import ServerNode

CHAIN = playbook(
    step("first", call("fetch"), call("store"), arcs=[arc("second")]),
    step("second", call("tell")),
)
DAY = 86_400.0


# ── T3 ───────────────────────────────────────────────────────────────────────────────────────


class Fuse:
    """Kills a server when it comes to a point for the n-th time."""

    def __init__(self, cluster: Cluster, plane: ServerNode, at: int) -> None:
        self._cluster = cluster
        self._plane = plane
        self._left = at
        self.burnt = asyncio.Event()

    async def burn(self) -> bool:
        """Whether the server is dead now."""
        self._left -= 1
        if self._left == 0:
            await self._cluster.kill_server(self._plane)
            self.burnt.set()
        return self._left <= 0


def before_commit(plane: ServerNode, fuse: Fuse) -> None:
    """A report has come, and is not in the log."""
    answer = plane.dispatcher.answer

    async def dying(asked: Any, by: Any) -> Any:
        if asked.reports and await fuse.burn():
            raise ServerAway("it died")
        return await answer(asked, by)

    vars(plane.dispatcher)["answer"] = dying


def before_dispatch(plane: ServerNode, fuse: Fuse) -> None:
    """What was decided is in the log, and its part was never offered."""
    pump = plane.server.handout.pump
    answer = plane.dispatcher.answer

    async def dying(asked: Any, by: Any) -> Any:
        reports = bool(asked.reports)
        vars(plane.server.handout)["pump"] = (lambda: None) if reports else pump
        told = await answer(asked, by)
        if reports and await fuse.burn():
            raise ServerAway("it died")
        return told

    vars(plane.dispatcher)["answer"] = dying


def before_acknowledgement(plane: ServerNode, fuse: Fuse) -> None:
    """Everything is done, parts are granted, and the worker does not hear of it."""
    answer = plane.dispatcher.answer

    async def dying(asked: Any, by: Any) -> Any:
        told = await answer(asked, by)
        if (told.grants or told.verdicts) and await fuse.burn():
            raise ServerAway("it died")
        return told

    vars(plane.dispatcher)["answer"] = dying


@pytest.mark.fault("T3")
@pytest.mark.rule("SRV-3", "EVT-3")
@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("point", [before_commit, before_dispatch, before_acknowledgement])
def test_a_server_that_dies_at_a_named_point_loses_and_doubles_nothing(
    tmp_path: Path, point: Callable[[ServerNode, Fuse], None], at: int
) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        first = await cluster.server()
        fuse = Fuse(cluster, first, at)
        point(first, fuse)
        worker = cluster.worker(tools, link=DirectLink(cluster.exchange, poll=0.05, patience=0.3))
        execution_id = await cluster.start(CHAIN)
        await asyncio.wait_for(fuse.burnt.wait(), PATIENCE)
        await cluster.server()
        execution = await cluster.end_of(execution_id)
        assert execution.status == "completed", execution.error
        await until(lambda: worker.session.waiting == 0)
        events = await cluster.events(execution_id)
        done = [event.task for event in events if isinstance(event, e.TaskDone)]
        assert done == ["fetch", "store", "tell"]
        effects = {(f"{execution_id}-{one.task_run_id}", one.attempt) for one in tools.calls}
        await look_at(cluster.root.log, execution_id, effects)

    clustered(test, tmp_path, ttl=0.5)


# ── T9 ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.fault("T9")
@pytest.mark.rule("WRK-1", "EVT-3")
@pytest.mark.parametrize("jump", [DAY, -DAY, 400 * DAY], ids=["ahead", "back", "a year ahead"])
def test_a_clock_that_jumps_moves_no_lease_and_no_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    async def test(cluster: Cluster) -> None:
        tools, gate, silence = CannedTools(), Gate(ok("there")), Silence()
        tools.answers["fetch"], tools.answers["tell"] = [gate], [silence]
        server = await cluster.server()
        worker = cluster.worker(tools)
        execution_id = await cluster.start(CHAIN)
        (key,) = await gate.held(1)
        now = time.time
        monkeypatch.setattr(time, "time", lambda: now() + jump)
        server.dispatcher.keeper.expire()
        await asyncio.wait_for(renewed(server, worker.name), PATIENCE)
        await gate.let_go(key)
        await until(lambda: called(tools, "tell") == 1)
        await server.order(execution_id, "cancel", "in another year")
        execution = await cluster.end_of(execution_id)
        assert (execution.status, silence.cancelled) == ("cancelled", 1)
        events = await cluster.events(execution_id)
        assert not any(isinstance(event, e.LeaseExpired) for event in events)
        assert [called(tools, label) for label in ("fetch", "store", "tell")] == [1, 1, 1]

    clustered(test, tmp_path)


async def renewed(server: ServerNode, worker: str) -> None:
    """The worker calls again, and is known all the while."""
    leases = list(server.dispatcher.leases.of_worker(worker))
    assert len(leases) == 1, "the jump of the clock ended the lease"
    (lease,) = leases
    before = lease.until
    while lease.until == before:
        assert worker in server.dispatcher.granting.seen
        await asyncio.sleep(0)


def called(tools: CannedTools, label: str) -> int:
    return sum(made.label == label for made in tools.calls)


# ── T15 ──────────────────────────────────────────────────────────────────────────────────────


def two_effects(value: str) -> str:
    first = effect("one", value)
    second = effect("two", value, keep(said="{{ outcome.result.data }}"))
    return playbook(
        step("start", first, arcs=[arc("end")]),
        step("end", second),
        metadata={"name": "changing", "path": "tests/changing"},
    )


def begun(url: str, client: Client) -> str:
    return client.execute("tests/changing", payload={"url": url}).execution_id


@pytest.mark.fault("T15")
@pytest.mark.rule("SRV-1", "SRV-3")
def test_an_execution_keeps_the_version_that_it_began_with(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    """Also where another server and another worker take it up."""
    with keeping() as ledger, sailing(tmp_path, database, nats_server.url) as fleet:
        came, answered = Event(), Event()

        def wait(_: int) -> None:
            came.set()
            answered.wait(PATIENCE)

        ledger.came = wait
        server, worker = fleet.server(), fleet.worker()
        fleet.ask(partial(registered, two_effects("old")))
        old = fleet.ask(partial(begun, ledger.url))
        assert came.wait(PATIENCE)
        fleet.ask(partial(registered, two_effects("new")))
        for member in (server, worker):
            member.again()
        answered.set()
        new = fleet.ask(partial(begun, ledger.url))
        assert [ended(fleet, one)["ctx"] for one in (old, new)] == [
            {"said": "old"},
            {"said": "new"},
        ]
        versions = [fleet.ask(partial(version_of, one)) for one in (old, new)]
        assert versions == ["1", "2"]


def version_of(execution_id: str, client: Client) -> str | None:
    return client.standing(execution_id).version
