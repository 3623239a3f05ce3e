"""Who is away is asked again, for as long as the caller says; who refuses is not."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.errors import ResultsUnavailable
from noetl.ports.object_store import PIECE, Spool, StoreAway, StoreRefused
from noetl.ports.result_store import ResultStore


class Moody(MemoryObjectStore):
    """Fails as often as it is told to."""

    place = "there"

    def __init__(self, *faults: Exception) -> None:
        super().__init__()
        self.faults = list(faults)
        self.writes = 0

    async def put(self, key: str, body: Spool) -> None:
        self.writes += 1
        self._fail()
        await super().put(key, body)

    async def get(self, key: str, start: int = 0) -> AsyncIterator[bytes]:
        async for piece in super().get(key, start):
            yield piece
            self._fail()

    def _fail(self) -> None:
        if self.faults:
            raise self.faults.pop(0)


async def test_who_is_away_is_asked_again() -> None:
    objects = Moody(StoreAway("later"), StoreAway("later"))
    await ResultStore(objects).put("e1", b"1", patience=30.0)
    assert (objects.writes, objects.faults) == (3, [])


async def test_who_refuses_is_not_asked_again() -> None:
    objects = Moody(StoreRefused("never"))
    with pytest.raises(ResultsUnavailable, match="read from there: never; check the store") as no:
        await ResultStore(objects).put("e1", b"1")
    assert (no.value.refused, objects.writes) == (True, 1)


async def test_patience_is_the_callers() -> None:
    objects = Moody(StoreAway("later"), StoreAway("later"))
    with pytest.raises(ResultsUnavailable, match=r"there: later \(away for 0 s\); check") as away:
        await ResultStore(objects).put("e1", b"1", patience=0.0)
    assert (away.value.refused, objects.writes) == (False, 1)


async def test_reading_goes_on_where_it_broke_off() -> None:
    objects = Moody()
    store = ResultStore(objects)
    text = "x" * (3 * PIECE)
    reference = await store.put("e1", f'"{text}"'.encode())
    objects.faults = [StoreAway("broken"), StoreAway("broken")]
    assert await store.fetch(reference) == text
    objects.faults = [StoreRefused("closed")]
    with pytest.raises(ResultsUnavailable, match="closed"):
        await store.fetch(reference)


async def test_whoever_gives_up_leaves_nothing_behind() -> None:
    """A task that is cancelled while its body waits for the store ends at once."""
    objects = Moody(*[StoreAway("later")] * 100)
    store = ResultStore(objects)
    putting = asyncio.create_task(store.put("e1", b"1"))
    while not objects.writes:
        await asyncio.sleep(0)
    putting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await putting
    objects.faults.clear()
    assert (await store.put("e1", b"1")).size == 1
