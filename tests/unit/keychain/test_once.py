"""One fetch for many callers, kept until shortly before its end."""

import asyncio

import pytest

from noetl.keychain.once import EARLY, Fetched, Once


class Source:
    """Counts how often it was asked; answers when told to."""

    def __init__(self, seconds: float = 1000.0) -> None:
        self.asked = 0
        self.seconds = seconds
        self.open = asyncio.Event()
        self.fault: Exception | None = None

    async def fetch(self) -> Fetched:
        self.asked += 1
        await self.open.wait()
        if self.fault is not None:
            raise self.fault
        return Fetched(f"value {self.asked}", self.seconds)


class Clock:
    def __init__(self) -> None:
        self.at = 50.0

    def __call__(self) -> float:
        return self.at


async def test_many_callers_share_one_fetch() -> None:
    once, source = Once(), Source()
    callers = [asyncio.create_task(once.value("k", source.fetch)) for _ in range(20)]
    await asyncio.sleep(0)
    source.open.set()
    assert await asyncio.gather(*callers) == ["value 1"] * 20
    assert await once.value("k", source.fetch) == "value 1"
    assert await once.value("other", source.fetch) == "value 2"


@pytest.mark.parametrize(
    ("seconds", "good_for"), [(1000.0, 1000.0 - EARLY), (100.0, 80.0), (EARLY, EARLY * 0.8)]
)
async def test_a_value_is_renewed_before_it_runs_out(seconds: float, good_for: float) -> None:
    clock = Clock()
    once, source = Once(clock), Source(seconds)
    source.open.set()
    await once.value("k", source.fetch)
    clock.at += good_for - 1
    assert await once.value("k", source.fetch) == "value 1"
    clock.at += 1
    assert await once.value("k", source.fetch) == "value 2"
    assert source.asked == 2


async def test_a_failure_is_told_to_all_and_not_kept() -> None:
    once, source = Once(), Source()
    source.fault = ValueError("no")
    source.open.set()
    told = await asyncio.gather(
        *(once.value("k", source.fetch) for _ in range(3)), return_exceptions=True
    )
    assert list(map(str, told)) == ["no"] * 3
    assert source.asked == 1
    source.fault = None
    assert await once.value("k", source.fetch) == "value 2"


async def test_who_began_it_may_be_cancelled() -> None:
    once, source = Once(), Source()
    first = asyncio.create_task(once.value("k", source.fetch))
    second = asyncio.create_task(once.value("k", source.fetch))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    source.open.set()
    assert await second == "value 1"


async def test_what_turned_out_useless_is_dropped() -> None:
    once, source = Once(), Source()
    source.open.set()
    assert once.last("k") is None
    await once.value("k", source.fetch)
    assert once.last("k") == "value 1"
    once.drop("k")
    assert await once.value("k", source.fetch) == "value 2"


async def test_closing_ends_what_runs() -> None:
    once, source = Once(), Source()
    waiting = asyncio.create_task(once.value("k", source.fetch))
    await asyncio.sleep(0)
    await once.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
