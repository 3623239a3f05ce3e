"""What every store of results promises."""

import hashlib
from collections.abc import AsyncIterator

import pytest

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.errors import BodyLost
from noetl.messages.reference import Reference
from noetl.ports.result_store import ResultStore

LIST = b"[" + b",".join(b"%d" % n for n in range(1000)) + b"]"


@pytest.mark.rule("RES-1")
@pytest.mark.parametrize(
    ("body", "value", "hint"),
    [
        (LIST, list(range(1000)), "list[1000]"),
        (b" []", [], "list[0]"),
        (b'{"a": {"b": [1]}}', {"a": {"b": [1]}}, "object"),
        ('"Grüße"'.encode(), "Grüße", "string"),
        (b"-1.5", -1.5, "number"),
        (b"true", True, "boolean"),
        (b"null", None, "null"),
    ],
)
async def test_a_body_comes_back(store: ResultStore, body: bytes, value: object, hint: str) -> None:
    reference = await store.put("e1", body)
    checksum = hashlib.sha256(body).hexdigest()
    assert (reference.key, reference.size) == (f"e1/{checksum}", len(body))
    assert (reference.checksum, reference.schema_hint) == (checksum, hint)
    assert await store.put("e1", body) == reference
    assert await store.fetch(reference) == value


async def test_pieces_make_the_same_body(store: ResultStore) -> None:
    writer = store.open("e1")
    for start in range(0, len(LIST), 100):
        writer.write(LIST[start : start + 100])
    writer.write(b"")
    reference = await writer.finish("list[1000]")
    assert reference == await store.put("e1", LIST)
    assert await store.fetch(reference) == list(range(1000))


async def test_a_body_can_be_read_in_pieces(store: ResultStore) -> None:
    body = b"[" + b",".join(b"%d" % n for n in range(200_000)) + b"]"
    pieces = [piece async for piece in store.pieces(await store.put("e1", body))]
    assert b"".join(pieces) == body
    assert max(map(len, pieces)) <= 262_144


@pytest.mark.parametrize(
    ("pieces", "hint"),
    [([b" [1", b"]"], "list"), ([b'{"a":', b"1}"], "object"), ([b"7"], "number")],
)
async def test_pieces_tell_their_shape(store: ResultStore, pieces: list[bytes], hint: str) -> None:
    writer = store.open("e1")
    for piece in pieces:
        writer.write(piece)
    assert (await writer.finish()).schema_hint == hint


async def test_what_is_discarded_was_never_there(store: ResultStore) -> None:
    begun, never = store.open("e1"), store.open("e1")
    begun.write(LIST)
    await begun.discard()
    await never.discard()
    assert await store.remove("e1") == 0


async def test_equal_bodies_share_a_key_within_one_execution(store: ResultStore) -> None:
    first, again = await store.put("e1", LIST), await store.put("e1", LIST)
    other = await store.put("e2", LIST)
    assert first == again
    assert first.key != other.key
    assert await store.remove("e1") == 1
    assert await store.fetch(other) == list(range(1000))


@pytest.mark.rule("RES-4")
async def test_removing_spares_what_is_kept(store: ResultStore) -> None:
    kept, gone = await store.put("e1", LIST), await store.put("e1", b"{}")
    assert await store.remove("e1", frozenset({kept.key})) == 1
    assert await store.fetch(kept) == list(range(1000))
    with pytest.raises(BodyLost, match=f"{gone.store}:{gone.key} "):
        await store.fetch(gone)
    assert await store.remove("e1") == 1
    assert await store.remove("e1") == 0


@pytest.mark.rule("RES-2", "RES-4")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"size": 3}, "has 3891 bytes now"),
        ({"checksum": "0" * 64}, "does not match its checksum"),
        ({"key": "e2/" + "0" * 64}, "cannot be read|not one of this store"),
        ({"key": "../e1/" + "0" * 64}, "not one of this store"),
        ({"key": "e1/../../noetl"}, "not one of this store"),
        ({"store": "elsewhere"}, "not one of this store"),
    ],
)
async def test_a_body_that_is_not_the_one_is_lost(
    store: ResultStore, change: dict[str, object], why: str
) -> None:
    reference = await store.put("e1", LIST)
    wrong = Reference(**(reference.fields() | change))
    with pytest.raises(BodyLost, match=why) as lost:
        await store.fetch(wrong)
    assert f"{wrong.store}:{wrong.key}" in str(lost.value)
    with pytest.raises(BodyLost, match=why):
        [piece async for piece in store.pieces(wrong)]


@pytest.mark.rule("RES-2")
async def test_no_more_is_read_than_a_reference_says() -> None:
    """A worker that says `10 bytes` of gibibytes, or a store that never ends, takes no memory."""

    class Endless(MemoryObjectStore):
        read = 0

        async def get(self, key: str, start: int = 0) -> AsyncIterator[bytes]:
            del key, start
            while True:
                self.read += 1
                yield b"x" * 1000

    objects = Endless()
    store = ResultStore(objects)
    said = Reference("memory", f"e1/{'0' * 64}", 10_000, "0" * 64)
    with pytest.raises(BodyLost, match="has 11000 bytes now, or more"):
        await store.fetch(said)
    with pytest.raises(BodyLost, match="has 11000 bytes now, or more"):
        [piece async for piece in store.pieces(said)]
    assert objects.read == 22


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "/etc", "a\x00", ".hidden", "x" * 300]
)
async def test_an_id_cannot_leave_the_store(store: ResultStore, name: str) -> None:
    with pytest.raises(ValueError, match="is not an execution id"):
        await store.put(name, b"1")
    with pytest.raises(ValueError, match="is not an execution id"):
        store.open(name)
    with pytest.raises(ValueError, match="is not an execution id"):
        await store.remove(name)
