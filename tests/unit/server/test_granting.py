"""Who gets the next part: spread evenly, suspects alone, and nothing from a stale owner."""

from collections.abc import Callable
from typing import Any

import pytest

from noetl.control.dispatch import Command
from noetl.ports.link import Call, Hold
from noetl.server.granting import HURRY, Granting
from noetl.server.leases import Leases, PartLease
from noetl.server.waiting_parts import SUSPECT, Offer, WaitingParts


def command(number: int, losses: int = 0) -> Command:
    return Command(
        execution_id=f"x{number}",
        step="start",
        step_run_id="4.0",
        part=0,
        epoch=1,
        args={},
        ctx={},
        workload={},
        trace_id="t",
        store="memory",
        due={},
        resumed=False,
        frame=None,
        iterations=None,
        losses=losses,
    )


class Pool:
    """Parts that wait, workers that call, and a clock moved by hand."""

    def __init__(self, *, sure: Callable[[], bool] = lambda: True) -> None:
        self.now = 100.0
        self.parts = WaitingParts()
        self.leases = Leases(lambda: self.now)
        self.granting = Granting(self.parts, self.leases, sure, lambda: self.now)

    def wait(self, number: int, losses: int = 0) -> None:
        offer = Offer(command(number, losses), "d", None, 15.0, 0.0, self.now)
        self.parts.add("default", offer)

    def grant_to(self, worker: str, hold: Hold, ttl: float) -> PartLease:
        return self.leases.grant(hold, worker, ttl)

    def call(self, worker: str, *, free: int = 100, room: int | None = None) -> list[str]:
        """The executions whose parts the worker gets."""
        call = Call(
            worker=worker,
            pool="default",
            version="1",
            slots=100,
            free=free,
            room=100 - self.leases.load_of(worker) if room is None else room,
        )
        self.granting.note(call)
        before = {lease.hold for lease in self.leases.of_worker(worker)}
        self.granting.grants(call, lambda _: True, self.grant_to)
        now = [lease.hold for lease in self.leases.of_worker(worker)]
        return [hold.execution_id for hold in now if hold not in before]

    def end(self, worker: str, number: int) -> None:
        assert self.leases.end((f"x{number}", "4.0", 0)) is not None, worker


def test_two_workers_with_room_share_what_waits() -> None:
    pool = Pool()
    pool.call("a")
    pool.call("b")
    for number in range(10):
        pool.wait(number)
    assert len(pool.call("a")) == 5
    assert len(pool.call("b")) == 5


def test_what_waits_long_goes_to_whoever_asks() -> None:
    pool = Pool()
    pool.call("a")
    pool.call("b")
    for number in range(10):
        pool.wait(number)
    pool.now += 2 * HURRY
    assert len(pool.call("a")) == 10


def test_a_stale_owner_grants_nothing() -> None:
    pool = Pool(sure=lambda: False)
    pool.wait(1)
    assert pool.call("a") == []
    assert pool.parts.count("default") == 1


def test_a_suspect_runs_alone() -> None:
    pool = Pool()
    pool.wait(1)
    assert pool.call("a") == ["x1"]
    pool.wait(2, losses=SUSPECT)
    pool.wait(3)
    assert pool.call("a") == [], "it is busy: it takes nothing more until it is idle"
    pool.end("a", 1)
    assert pool.call("a") == ["x2"]
    assert pool.call("a") == [], "nothing beside a suspect"
    pool.end("a", 2)
    assert pool.call("a") == ["x3"]


@pytest.mark.parametrize("chosen_first", [True, False])
def test_an_idle_worker_takes_a_suspect_whoever_was_chosen(chosen_first: bool) -> None:
    pool = Pool()
    pool.wait(1)
    assert pool.call("busy") == ["x1"]
    pool.wait(2, losses=SUSPECT)
    if chosen_first:
        assert pool.call("busy") == []
    assert pool.call("idle") == ["x2"]


def test_a_parent_that_waits_for_a_suspect_child_keeps_nobody_busy() -> None:
    """Its worker is the only one: child and parent would wait for each other."""
    pool = Pool()
    pool.wait(1)
    assert pool.call("only") == ["x1"]
    pool.wait(2, losses=SUSPECT)
    waits_for_its_child: Any = pool.call("only", room=100)
    assert waits_for_its_child == ["x2"]
