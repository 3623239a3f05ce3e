"""Who gets the next part: spread evenly, suspects alone, and nothing from a stale owner."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from noetl.control.dispatch import Command
from noetl.ports.link import Call, Hold
from noetl.server import granting
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

    def woken_by(self, worker: str, *, free: int = 100) -> list[str]:
        """Whom the server wakes after it answered this worker; `*` is anybody of the pool."""
        served = bool(self.call(worker, free=free))
        call = Call(worker=worker, pool="default", version="1", slots=100, free=free, room=1)
        woken: list[str] = []
        heard: Any = self.granting
        heard.wake_soon, heard.wake_worker = lambda *_: woken.append("*"), woken.append
        self.granting.pass_on(call, {}, served=served)
        return woken

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


def test_a_worker_that_runs_a_suspect_is_not_woken_for_what_it_may_not_take() -> None:
    """It would call, get nothing, be woken and call, as often as the line allows."""
    pool = Pool()
    pool.wait(1, losses=SUSPECT)
    pool.wait(2)
    assert pool.call("alone") == ["x1"]
    assert pool.woken_by("alone") == []
    assert pool.call("other", free=0) == []
    assert pool.woken_by("alone") == ["other"]
    assert pool.woken_by("other", free=0) == ["*"], "it passes on what it has no room for"


def test_a_worker_that_is_to_run_a_suspect_is_not_woken_until_it_is_idle() -> None:
    pool = Pool()
    pool.wait(1)
    assert pool.call("busy") == ["x1"]
    pool.wait(2, losses=SUSPECT)
    assert pool.woken_by("busy") == []
    pool.wait(3)
    assert pool.call("other", free=0) == []
    assert pool.woken_by("busy") == ["other"]


class Bell:
    """A notifier that remembers whom it woke, and says when it was all."""

    def __init__(self) -> None:
        self.woken: list[str] = []
        self.all = asyncio.Event()

    def wake_worker(self, worker: str) -> None:
        self.woken.append(worker)

    def wake_pool(self, pool: str, parts: int) -> None:
        self.woken.append(f"{parts} in {pool}")
        self.all.set()


def test_whose_turn_it_is_has_a_little_time_before_all_are_woken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may have died: whoever is there then takes the part."""
    monkeypatch.setattr(granting, "HURRY", 0.0)

    async def ring() -> list[str]:
        bell = Bell()
        pool = Pool()
        assert pool.call("here") == []
        pool.wait(1)
        assert pool.call("here") == ["x1"]
        assert pool.call("silent") == []
        pool.wait(2)
        pool.granting.notifiers.append(bell)
        assert pool.call("here") == []
        call = Call(worker="here", pool="default", version="1", slots=100, free=99, room=99)
        for _ in range(2):
            pool.granting.pass_on(call, {}, served=False)
        assert bell.woken == ["silent"]
        await bell.all.wait()
        return bell.woken

    assert asyncio.run(ring()) == ["silent", "1 in default"]


def test_whoever_got_something_passes_the_wake_up_on() -> None:
    pool = Pool()
    pool.wait(1)
    pool.wait(2)
    assert pool.woken_by("a", free=1) == ["*"]
