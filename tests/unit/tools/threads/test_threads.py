"""Calls in threads: answers come back, faults too, and cancelling stops the work from outside."""

import asyncio
import threading

import pytest

from noetl.tools.threads import in_thread

PATIENCE = 600.0


def test_what_the_work_returns_or_raises_comes_back() -> None:
    async def asking() -> str:
        with pytest.raises(KeyError, match="gone"):
            await in_thread(lambda: dict[str, int]()["gone"], lambda: None)
        return await in_thread(lambda: threading.current_thread().name, lambda: None)

    assert asyncio.run(asking()) == "waiting-call"


def test_cancelling_stops_the_work_and_waits_for_nothing() -> None:
    begun, stopped, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert stopped.wait(PATIENCE)
        ended.set()

    async def asking() -> None:
        running = asyncio.create_task(in_thread(work, stopped.set))
        await asyncio.to_thread(begun.wait, PATIENCE)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(asking())

    assert ended.wait(PATIENCE)


def test_work_that_outlives_the_loop_disturbs_nobody() -> None:
    release, ended = threading.Event(), threading.Event()

    def work() -> None:
        assert release.wait(PATIENCE)
        ended.set()

    async def asking() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await in_thread(work, lambda: None)

    asyncio.run(asking())
    release.set()

    assert ended.wait(PATIENCE)
