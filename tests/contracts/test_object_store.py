"""What every object store promises."""

import hashlib

import pytest
from tests.contracts.stores import OpenedStore

from noetl.ports.object_store import IN_MEMORY, PIECE, ObjectStore, Spool

LARGE = b"0123456789abcdef" * (IN_MEMORY // 16 + PIECE // 16 + 1)


def key_of(execution_id: str, body: bytes) -> str:
    return f"{execution_id}/{hashlib.sha256(body).hexdigest()}"


async def kept(objects: ObjectStore, execution_id: str, body: bytes) -> str:
    key = key_of(execution_id, body)
    await objects.put(key, Spool(body))
    return key


async def read(objects: ObjectStore, key: str, start: int = 0) -> list[bytes]:
    return [piece async for piece in objects.get(key, start)]


def on_disk(body: bytes) -> Spool:
    spool = Spool()
    for at in range(0, len(body), PIECE):
        spool.write(body[at : at + PIECE])
    return spool


@pytest.mark.parametrize("size", [1, PIECE - 1, PIECE, PIECE + 1, len(LARGE)])
async def test_an_object_comes_back_in_pieces(store: OpenedStore, size: int) -> None:
    body, objects = LARGE[:size], store.objects
    spool = on_disk(body)
    await objects.put(key_of("e1", body), spool)
    await objects.put(key_of("e1", body), spool)
    pieces = await read(objects, key_of("e1", body))
    assert b"".join(pieces) == body
    assert max(map(len, pieces)) <= PIECE
    spool.file.close()


@pytest.mark.parametrize("start", [1, PIECE - 1, PIECE, 3 * PIECE + 7, len(LARGE) - 1, len(LARGE)])
async def test_reading_goes_on_where_it_broke_off(store: OpenedStore, start: int) -> None:
    key = await kept(store.objects, "e1", LARGE)
    assert b"".join(await read(store.objects, key, start)) == LARGE[start:]


async def test_what_is_not_there_is_said(store: OpenedStore) -> None:
    with pytest.raises(FileNotFoundError):
        await read(store.objects, key_of("e1", b"1"))
    await kept(store.objects, "e1", b"1")
    with pytest.raises(FileNotFoundError):
        await read(store.objects, key_of("e1", b"2"))


async def test_only_the_objects_of_the_execution_are_listed(store: OpenedStore) -> None:
    objects = store.objects
    here = [await kept(objects, "e.1", b"%d" % n) for n in range(5)]
    for other in ("e", "e.11", "e.1.2", "E.1"):
        await kept(objects, other, b"1")
    assert sorted(await objects.keys("e.1/")) == sorted(here)
    assert await objects.keys("nobody/") == []


async def test_what_is_removed_is_gone(store: OpenedStore) -> None:
    objects = store.objects
    first, second = await kept(objects, "e1", b"1"), await kept(objects, "e1", b"2")
    assert await objects.remove([]) == 0
    assert await objects.remove([first]) == 1
    await objects.remove([first, key_of("e1", b"3")])
    assert await objects.keys("e1/") == [second]
    await kept(objects, "e1", b"1")
    assert await read(objects, first) == [b"1"]
