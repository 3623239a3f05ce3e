"""The cache of loaded values: one load for many, bounded by bytes, fed by those who made them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.errors import BodyLost, ResultsUnavailable
from noetl.messages.codec import encode
from noetl.messages.reference import Reference
from noetl.ports.bodies import Bodies
from noetl.ports.object_store import StoreAway
from noetl.ports.result_store import ResultStore


class Slow(MemoryObjectStore):
    """Counts who reads, and answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []
        self.answers = asyncio.Event()
        self.away = False

    async def get(self, key: str, start: int = 0) -> AsyncIterator[bytes]:
        self.reads.append(key)
        await self.answers.wait()
        if self.away:
            raise StoreAway("not now")
        async for piece in super().get(key, start):
            yield piece


async def stored(store: ResultStore, value: Any) -> Reference:
    return await store.put("e1", encode(value))


async def test_many_who_ask_at_once_cause_one_load() -> None:
    objects = Slow()
    store = ResultStore(objects)
    reference, bodies = await stored(store, [1]), Bodies(store)
    asking = [asyncio.create_task(bodies.load(reference)) for _ in range(5)]
    while not objects.reads:
        await asyncio.sleep(0)
    asking[0].cancel()
    objects.answers.set()
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError), "who gives up stops nobody else"
    assert found[1:] == [[1]] * 4
    assert await bodies.load(reference) is found[1]
    assert len(objects.reads) == 1


async def test_who_made_a_body_need_not_load_it() -> None:
    objects = Slow()
    store = ResultStore(objects)
    bodies, value = Bodies(store), {"a": 1}
    reference = await stored(store, value)
    bodies.keep(reference, value)
    assert await bodies.load(reference) is value
    assert objects.reads == []


async def test_the_values_kept_are_bounded() -> None:
    objects = Slow()
    objects.answers.set()
    store = ResultStore(objects)
    texts = ["x" * 100, "y" * 100, "z" * 500]
    first, second, huge = [await stored(store, text) for text in texts]
    bodies = Bodies(store, room=250)
    for one in (first, second, first, huge, first):
        assert await bodies.load(one) in texts
    assert objects.reads == [first.key, second.key, huge.key, first.key]
    bodies.keep(first, "again")
    bodies.keep(first, "again")
    await bodies.load(second)
    assert await bodies.load(first) == "again", "kept twice is kept once"


async def test_a_load_that_failed_is_tried_again() -> None:
    objects = Slow()
    objects.away = True
    objects.answers.set()
    store = ResultStore(objects, patience=0.0)
    reference, bodies = await stored(store, [1]), Bodies(store)
    with pytest.raises(ResultsUnavailable, match="not now"):
        await bodies.load(reference)
    objects.away = False
    kept = objects.kept.pop(reference.key)
    with pytest.raises(BodyLost):
        await bodies.load(reference)
    objects.kept[reference.key] = kept
    assert await bodies.load(reference) == [1]


async def test_a_list_in_chunks_comes_whole() -> None:
    store = ResultStore(MemoryObjectStore())
    chunks = [(await stored(store, part)).fields() for part in ([1, 2], [], [3])]
    manifest = await stored(store, {"chunks": chunks})
    manifest.schema_hint = "chunks[3]"
    assert await Bodies(store).load(manifest) == [1, 2, 3]


async def test_few_chunks_that_name_each_other_take_no_server() -> None:
    """Six bodies of some kilobytes, which are a list of a million millions of numbers."""
    objects = Slow()
    objects.answers.set()
    store = ResultStore(objects)
    named, hint = await stored(store, [1, 2, 3]), "list[3]"
    for _ in range(4):
        named.schema_hint = hint
        named, hint = await stored(store, {"chunks": [named.fields()] * 1000}), "chunks[9]"
    named.schema_hint = hint
    with pytest.raises(BodyLost, match="which no server loads"):
        await Bodies(store).load(named, largest=1_000_000)
    assert len(objects.reads) < 1000


@pytest.mark.parametrize(
    "named", [[{"key": ["x"]}], "abc", {"a": 1}, None, [{"store": "memory", "key": 1}], [7]]
)
async def test_what_names_no_chunks_is_lost(named: Any) -> None:
    store = ResultStore(MemoryObjectStore())
    manifest = await stored(store, {"chunks": named})
    manifest.schema_hint = "chunks[3]"
    with pytest.raises(BodyLost):
        await Bodies(store).load(manifest)


async def test_a_chunk_that_is_no_list_is_lost() -> None:
    store = ResultStore(MemoryObjectStore())
    manifest = await stored(store, {"chunks": [(await stored(store, {"a": 1})).fields()]})
    manifest.schema_hint = "chunks[1]"
    with pytest.raises(BodyLost):
        await Bodies(store).load(manifest)
