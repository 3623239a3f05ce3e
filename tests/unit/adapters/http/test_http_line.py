"""Workers over HTTP beyond the contract: addresses, refusals, waiting for a server, bodies."""

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
from tests.support.api import Deaf, SmallPlane, begin, reserved, served

from noetl.adapters.http.addresses import addresses_in
from noetl.adapters.http.link import HttpLink, open_http
from noetl.adapters.http.object_store import HttpObjectStore
from noetl.adapters.http.requests import reason_in
from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.api.tokens import new_token
from noetl.errors import BodyLost, NoetlError, ResultsUnavailable, ServerRefused, SettingRefused
from noetl.ports.link import Call, OwnerWanted
from noetl.ports.object_store import StoreAway
from noetl.ports.result_store import ResultStore

CALL = Call(worker="w", pool="p", version="1")


class Where(NamedTuple):
    """The settings that a line asks for."""

    server: str | None
    token: str | None = None


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("http://a:1", ["http://a:1"]),
        ("http://a:1/", ["http://a:1"]),
        (" http://a:1 , https://b ", ["http://a:1", "https://b"]),
        ("http://[::1]:8765", ["http://[::1]:8765"]),
    ],
)
def test_addresses_are_read_from_a_setting(text: str, urls: list[str]) -> None:
    assert addresses_in(text) == urls


@pytest.mark.parametrize("text", ["a:1", "ftp://a", "http://", "http://a:x", "http://[::1", "x,y"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(SettingRefused, match=r"NOETL_SERVER has .*expected http://HOST:PORT"):
        addresses_in(text)


@pytest.mark.parametrize("text", [None, "", " , "])
def test_a_worker_needs_an_address_or_a_queue(text: str | None) -> None:
    with pytest.raises(SettingRefused, match="NOETL_QUEUE or NOETL_SERVER"):
        addresses_in(text)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"error":{"code":"c","message":"m"}}', ("m", "c")),
        (b"<html>", ("the server answered with status 502", "refused")),
        (b"[]", ("the server answered with status 502", "refused")),
        (b'{"error":null}', ("the server answered with status 502", "refused")),
    ],
)
def test_a_refusal_is_told_in_words_whoever_said_it(body: bytes, reason: tuple[str, str]) -> None:
    assert reason_in(body, 502) == reason


async def test_a_token_that_opens_nothing_is_said_and_not_retried() -> None:
    plane = SmallPlane()
    text, row = new_token("viewer", "viewer", now_ms=1)
    await plane.storage.tokens.add(row)
    async with served(plane, auth=True) as found:
        for token, status in ((None, 401), ("noetl_wrong", 401), (text, 403)):
            link = HttpLink([found.url], token, poll=0.01)
            with pytest.raises(ServerRefused) as refused:
                await link.call("small", CALL)
            assert refused.value.status == status
            with pytest.raises(ServerRefused):
                await link.wake("w", "p", hungry=True)
            with pytest.raises(ServerRefused):
                await open_http(Where(found.url, token), says=lambda _: None)
            await link.close()


async def test_a_worker_waits_for_a_server_and_says_so_once() -> None:
    kept = reserved()
    port = kept.getsockname()[1]
    said: list[str] = []
    opening = asyncio.create_task(open_http(Where(f"http://127.0.0.1:{port}"), says=said.append))
    while not said:
        await asyncio.sleep(0)
    kept.close()
    server = await begin(SmallPlane(), port=port)
    link, results = await opening
    assert results.name == "memory"
    assert (await link.call("small", CALL)).tidy == ["w"]
    await link.close()
    server.stop.set()
    await server.task
    assert said == [f"no server answers at http://127.0.0.1:{port}: waiting for one"]


async def test_a_server_that_took_anothers_address_is_not_mistaken_for_it() -> None:
    kept = reserved()
    port = kept.getsockname()[1]
    kept.close()
    first = await begin(SmallPlane(Deaf("one")), port=port)
    link = HttpLink([first.url])
    assert (await link.call("one", CALL)).server == "one"
    first.stop.set()
    await first.task
    second = await begin(SmallPlane(Deaf("two")), port=port)
    assert (await link.call("two", CALL)).server == "two"
    with pytest.raises(NoetlError, match="server 'one' cannot be reached"):
        await link.call("one", CALL)
    assert (await link.ask(OwnerWanted("e"))).error == {
        "code": "not_found",
        "message": "OwnerWanted",
    }
    await link.close()
    second.stop.set()
    await second.task


async def test_a_change_of_appetite_takes_no_ring_away() -> None:
    plane = SmallPlane()
    async with served(plane) as found:
        (wakes,) = plane.dispatcher.notifiers
        link = HttpLink([found.url], poll=20)
        hungry = asyncio.create_task(link.wake("w", "p", hungry=True))
        while wakes.waiting < 1:
            await asyncio.sleep(0)
        hungry.cancel()
        full = asyncio.create_task(link.wake("w", "p", hungry=False))
        while not full.done() and wakes.waiting != 1:
            await asyncio.sleep(0)
        other = asyncio.create_task(link.wake("v", "p", hungry=True))
        while not other.done():
            wakes.wake_pool("p", 1)
            await asyncio.sleep(0)
        assert not full.done()
        full.cancel()
        await link.close()


def http_store(*urls: str, token: str | None = None, patience: float = 60.0) -> ResultStore:
    return ResultStore(HttpObjectStore(urls, token, name="memory"), patience=patience)


async def test_a_worker_removes_nothing() -> None:
    store = http_store("http://127.0.0.1:1")
    with pytest.raises(ResultsUnavailable, match="a worker lists and removes no results"):
        await store.remove("e1")


async def test_a_store_that_is_away_is_waited_for_and_then_told() -> None:
    kept = reserved()
    url = f"http://127.0.0.1:{kept.getsockname()[1]}"
    store = http_store(url, patience=0.2)
    with pytest.raises(ResultsUnavailable, match=rf"read from {url}: .*\(away for .*try again"):
        await store.put("e1", b"1")
    await store.close()
    kept.close()


async def test_another_address_is_asked_where_the_first_is_away() -> None:
    kept = reserved()
    gone = f"http://127.0.0.1:{kept.getsockname()[1]}"
    async with served(SmallPlane()) as server:
        store = http_store(gone, server.url)
        reference = await store.put("e1", b'{"a":1}')
        assert await store.fetch(reference) == {"a": 1}
        await store.close()
    kept.close()


async def test_a_store_refuses_who_has_no_token() -> None:
    async with served(SmallPlane(), auth=True) as server:
        store = http_store(server.url, token="noetl_wrong")
        with pytest.raises(ResultsUnavailable, match="the server refused a result") as no:
            await store.put("e1", b"1")
        assert no.value.refused
        await store.close()


class Breaking(MemoryObjectStore):
    """A store that goes away after every piece."""

    def __init__(self) -> None:
        super().__init__()
        self.starts: list[int] = []

    async def get(self, key: str, start: int = 0) -> AsyncIterator[bytes]:
        self.starts.append(start)
        async for piece in super().get(key, start):
            yield piece
            raise StoreAway("it broke")


async def test_reading_goes_on_where_a_store_broke_off() -> None:
    objects = Breaking()
    async with served(SmallPlane(results=ResultStore(objects, patience=0.0))) as server:
        store = http_store(server.url)
        text = "x" * 600_000
        reference = await store.put("e1", f'"{text}"'.encode())
        assert await store.fetch(reference) == text
        assert sorted(set(objects.starts)) == [0, 262_144, 524_288, reference.size]
        await store.close()


async def test_a_body_that_changed_on_its_way_is_lost() -> None:
    objects = MemoryObjectStore()
    async with served(SmallPlane(results=ResultStore(objects))) as server:
        store = http_store(server.url)
        reference = await store.put("e1", b"[1]")
        objects.kept[reference.key] = b"[2]"
        with pytest.raises(BodyLost, match="does not match its checksum"):
            await store.fetch(reference)
        objects.kept.clear()
        with pytest.raises(BodyLost, match="cannot be read"):
            await store.fetch(reference)
        await store.close()


async def test_a_large_body_goes_and_comes_in_pieces() -> None:
    async with served(SmallPlane()) as server:
        store = http_store(server.url)
        writer = store.open("e1")
        for _ in range(100):
            writer.write(b" " * 100_000)
        writer.write(b"[1,2]")
        reference = await writer.finish()
        assert (reference.size, reference.schema_hint) == (10_000_005, "number")
        pieces = [piece async for piece in store.pieces(reference)]
        assert len(pieces) > 30
        assert b"".join(pieces).strip() == b"[1,2]"
        await store.close()
