"""KEEP-1: archives in the NATS that has the results, and what is left of writes there."""

import hashlib

import pytest
from tests.support.nats import running

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.memory.storage import MemoryStorage
from noetl.adapters.nats.names import named, token_of
from noetl.adapters.nats.object_store import NatsObjectStore
from noetl.node.archiving import Archives
from noetl.ports.result_store import ResultStore
from noetl.server.policies import RetentionPolicy

POLICY = RetentionPolicy(older_than=0.0, archive="results")
BODY = b"[1]"


async def bytes_of(store: ResultStore, key: str) -> bytes:
    return b"".join([piece async for piece in store.read(key)])


@pytest.mark.rule("KEEP-1")
async def test_an_archive_lies_beside_the_results() -> None:
    """Its names are no checksums; each try failed, and nothing was ever removed."""
    with running() as server:
        store = ResultStore(NatsObjectStore(server.url))
        reference = await store.put("e.1", BODY)
        place = ResultStore(NatsObjectStore(server.url))
        archives = Archives(MemoryStorage().log, store, lambda _: place)
        for _ in range(2):
            await archives.keep(POLICY, ["e.1"])
        names = ["archive/e.1.jsonl", f"archive/e.1.{reference.checksum}.json"]
        assert await store.keys("archive") == names[1:]
        assert [await bytes_of(store, name) for name in names] == [b"", BODY], "no log, one body"
        assert await store.keys("e.1") == [reference.key]
        await archives.close()
        await store.close()


@pytest.mark.rule("KEEP-1")
async def test_what_is_left_of_a_write_keeps_nothing_from_its_archive() -> None:
    """A worker that dies in a write leaves chunks without a message about them."""
    with running() as server:
        objects = NatsObjectStore(server.url)
        store, place = ResultStore(objects), ResultStore(MemoryObjectStore())
        reference = await store.put("e1", BODY)
        rest = f"$O.noetl-results.C.e1.{hashlib.sha256(b'rest').hexdigest()}.0011"
        await objects._asked(lambda stream: stream.publish(rest, b"re"))
        assert len(await store.keys("e1")) == 2
        archives = Archives(MemoryStorage().log, store, lambda _: place)
        await archives.keep(POLICY, ["e1"])
        assert await bytes_of(place, f"archive/e1.{reference.checksum}.json") == BODY
        await archives.close()
        await store.close()


@pytest.mark.parametrize("name", ["plain", "e.1.jsonl", "=", "\u00fc *>", "=41"])
def test_a_token_leads_back_to_its_name(name: str) -> None:
    assert named(token_of(name)) == name
