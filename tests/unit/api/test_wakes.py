"""Workers that wait over HTTP: who is woken by what, and what is remembered."""

import asyncio

import pytest

from noetl.api import wakes as module
from noetl.api.wakes import HttpWakes

SOON = 30.0


async def waiting(wakes: HttpWakes, worker: str, pool: str, *, hungry: bool) -> asyncio.Task[bool]:
    task = asyncio.create_task(wakes.wait(worker, pool, hungry=hungry, seconds=SOON))
    before = wakes.waiting
    while wakes.waiting == before and not task.done():
        await asyncio.sleep(0)
    return task


async def let_run() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_ring_wakes_the_hungry_of_its_pool_first_come_first_served() -> None:
    wakes = HttpWakes()
    tasks = [
        await waiting(wakes, "full", "p", hungry=False),
        await waiting(wakes, "a", "p", hungry=True),
        await waiting(wakes, "other", "q", hungry=True),
        await waiting(wakes, "b", "p", hungry=True),
        await waiting(wakes, "c", "p", hungry=True),
    ]
    wakes.wake_pool("p", 2)
    await let_run()
    assert [task.done() for task in tasks] == [False, True, False, True, False]
    wakes.wake_pool("p", 1)
    await let_run()
    assert [task.done() for task in tasks] == [False, True, False, True, True]
    assert [await task for task in tasks if task.done()] == [True, True, True]
    wakes.close()
    assert [await task for task in tasks] == [False, True, False, True, True]
    assert wakes.waiting == 0


async def test_a_nudge_wakes_its_worker_hungry_or_not() -> None:
    wakes = HttpWakes()
    meant = await waiting(wakes, "a", "p", hungry=False)
    other = await waiting(wakes, "b", "p", hungry=True)
    wakes.wake_worker("a")
    assert await meant is True
    assert not other.done()
    wakes.close()
    assert await other is False


async def test_what_was_rung_meanwhile_is_heard_once() -> None:
    wakes = HttpWakes()
    wakes.wake_pool("p", 3)
    wakes.wake_worker("b")
    assert await wakes.wait("a", "p", hungry=False, seconds=0) is False, "the ring is not for it"
    assert await wakes.wait("a", "q", hungry=True, seconds=0) is False
    assert await wakes.wait("a", "p", hungry=True, seconds=0) is True
    assert await wakes.wait("a", "p", hungry=True, seconds=0) is False
    assert await wakes.wait("b", "p", hungry=False, seconds=0) is True
    assert await wakes.wait("b", "p", hungry=False, seconds=0) is False


async def test_who_waits_long_enough_is_told_so() -> None:
    wakes = HttpWakes()
    assert await wakes.wait("a", "p", hungry=True, seconds=0.001) is False
    assert wakes.waiting == 0


async def test_who_gives_up_is_forgotten() -> None:
    wakes = HttpWakes()
    task = await waiting(wakes, "a", "p", hungry=True)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert wakes.waiting == 0
    wakes.wake_pool("p", 1)
    assert await wakes.wait("b", "p", hungry=True, seconds=0) is True, "the ring was not lost"


async def test_after_the_stop_nobody_waits() -> None:
    wakes = HttpWakes()
    wakes.close()
    assert await wakes.wait("a", "p", hungry=True, seconds=SOON) is False


async def test_names_are_not_remembered_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    wakes = HttpWakes()
    for number in range(5):
        wakes.wake_worker(f"w{number}")
    heard = [await wakes.wait(f"w{n}", "p", hungry=False, seconds=0) for n in range(5)]
    assert heard == [False, False, True, True, True]
