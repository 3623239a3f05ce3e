"""The answer to an append: everybody who waits gets it, whatever the others do."""

import asyncio

import pytest

from noetl.errors import LogUnavailable
from noetl.ports.commit import Commit, committed


async def asked(commit: Commit) -> "list[asyncio.Task[None]]":
    """Three who wait for it."""

    async def wait() -> None:
        await commit

    tasks = [asyncio.create_task(wait()) for _ in range(3)]
    await asyncio.sleep(0)
    return tasks


async def test_whoever_is_cancelled_takes_nothing_from_the_others() -> None:
    commit = Commit()
    first, *others = await asked(commit)
    first.cancel()
    commit.settle()
    await asyncio.gather(*others)
    await asyncio.wait([first])
    assert first.cancelled()


async def test_a_refusal_is_told_to_each() -> None:
    commit = Commit()
    tasks = await asked(commit)
    fault = LogUnavailable("the disk is full")
    commit.settle(fault)
    assert await asyncio.gather(*tasks, return_exceptions=True) == [fault] * 3
    with pytest.raises(LogUnavailable):
        await commit


async def test_a_callback_that_fails_keeps_nobody_waiting() -> None:
    commit = Commit()
    commit.add_done_callback(lambda _: [].pop())
    tasks = await asked(commit)
    with pytest.raises(IndexError):
        commit.settle()
    await asyncio.gather(*tasks)


async def test_what_is_committed_already_is_not_waited_for() -> None:
    heard: list[Commit] = []
    commit = committed()
    commit.add_done_callback(heard.append)
    assert heard == [commit]
    assert commit.is_kept()
    await commit
