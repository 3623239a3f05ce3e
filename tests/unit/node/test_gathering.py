"""One reading for many who ask: none of them is answered with what was read before they asked."""

import asyncio

import pytest

from noetl.node.gathering import Gathered


class Source:
    """A value that changes, read slowly."""

    def __init__(self) -> None:
        self.value = 0
        self.reads = 0
        self.go = asyncio.Event()

    async def read(self, key: str) -> tuple[str, int]:
        self.reads += 1
        found = self.value
        await self.go.wait()
        return key, found


async def test_many_who_ask_at_once_share_one_reading() -> None:
    source = Source()
    asked = Gathered(source.read)
    asking = [asyncio.ensure_future(asked("a")) for _ in range(50)]
    source.go.set()
    assert set(await asyncio.gather(*asking)) == {("a", 0)}
    assert source.reads == 1


async def test_who_asks_later_gets_what_was_read_later() -> None:
    source = Source()
    asked = Gathered(source.read)
    early = asyncio.ensure_future(asked("a"))
    while not source.reads:
        await asyncio.sleep(0)
    source.value = 1
    late = [asyncio.ensure_future(asked("a")) for _ in range(3)]
    other = asyncio.ensure_future(asked("b"))
    source.go.set()
    assert await early == ("a", 0)
    assert await asyncio.gather(*late) == [("a", 1)] * 3
    assert await other == ("b", 1)
    assert source.reads == 3


async def test_a_fault_is_told_to_all_and_forgotten() -> None:
    faults = [LookupError("away")]

    async def read(key: str) -> str:
        if faults:
            raise faults.pop()
        return key

    asked = Gathered(read)
    told = await asyncio.gather(asked("a"), asked("a"), return_exceptions=True)
    assert [type(one) for one in told] == [LookupError, LookupError]
    assert await asked("a") == "a"


async def test_who_goes_away_leaves_the_reading_to_the_others() -> None:
    source = Source()
    asked = Gathered(source.read)
    gone, stays = (asyncio.ensure_future(asked("a")) for _ in range(2))
    while not source.reads:
        await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    source.go.set()
    assert await stays == ("a", 0)
