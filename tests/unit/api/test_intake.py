"""Strangers on raw sockets: what they send without an end, without haste, and in great number."""

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from litestar._parsers import parse_query_string
from tests.support.api import SmallPlane, served

from noetl.api import intake
from noetl.api.intake import (
    LARGEST_HEAD,
    LONGEST_ADDRESS,
    MOST_PARAMETERS,
    Intake,
    most_connections,
)
from noetl.api.tokens import make_token
from noetl.messages import details
from noetl.messages.details import MOST_BARE, MOST_VALUES

Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /api/validate HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/yaml\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
OPEN = b"POST /api/sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
PATIENCE = 600
"""Seconds before a test that hangs fails; never a time that is expected to pass."""


@asynccontextmanager
async def strangers(count: int = 1, *, auth: bool = False) -> AsyncIterator[tuple[str, list[Peer]]]:
    async with served(SmallPlane(), auth=auth) as found, asyncio.timeout(PATIENCE):
        port = int(found.url.rpartition(":")[2])
        peers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
        yield found.url, peers
        for _, writer in peers:
            writer.close()


async def told(peer: Peer) -> bytes:
    """All that comes until the server closes; a reset is an end, too."""
    try:
        return await peer[0].read()
    except ConnectionError:
        return b""


async def is_well(url: str) -> bool:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/healthz") as answer:
        return answer.status == 200


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience that ends within a test."""
    for name, seconds in (
        ("HEAD_WITHIN", 0.2),
        ("BODY_WITHIN", 0.2),
        ("STRANGE_WITHIN", 0.3),
        ("ANSWER_WITHIN", 0.2),
        ("LOOK", 0.05),
    ):
        monkeypatch.setattr(intake, name, seconds)


ENDLESS = {
    "a first line": (b"GET /", b"a" * 10_000),
    "a header": (HEAD + b"x: ", b"a" * 10_000),
    "the name of a header": (HEAD, b"a" * 10_000),
    "headers": (HEAD, b"x-a: b\r\n" * 1000),
    "trailers": (CHUNKED + b"0\r\n", b"x-a: b\r\n" * 1000),
    "a trailer": (CHUNKED + b"0\r\nx: ", b"a" * 10_000),
    "the name of a trailer": (CHUNKED + b"1\r\na\r\n0\r\n", b"a" * 10_000),
    "the head of a chunk": (CHUNKED + b"1;", b"a" * 10_000),
    "heads of chunks": (CHUNKED, b"0" * 10_000),
}


@pytest.mark.rule("SRV-1")
@pytest.mark.parametrize("what", ENDLESS)
async def test_a_head_without_an_end_is_cut_off(what: str) -> None:
    begin, more = ENDLESS[what]
    async with strangers() as (url, [peer]):
        peer[1].write(begin)
        sent = 0
        try:
            while sent < 200 * LARGEST_HEAD:
                peer[1].write(more)
                await peer[1].drain()
                sent += len(more)
        except ConnectionError:
            pass
        assert sent < 200 * LARGEST_HEAD, "the server takes whatever it is sent"
        assert await is_well(url)


async def test_a_head_that_is_too_large_is_answered() -> None:
    async with strangers() as (_, [peer]):
        peer[1].write(HEAD + b"x: " + b"a" * LARGEST_HEAD + b"\r\n\r\n")
        assert (await told(peer)).startswith(b"HTTP/1.1 400 ")


async def test_a_head_of_ordinary_size_is_taken_in_any_pieces() -> None:
    async with strangers() as (_, [peer]):
        whole = HEAD + b"x: " + b"a" * (LARGEST_HEAD // 2) + b"\r\nConnection: close\r\n\r\n"
        for start in range(0, len(whole), 1000):
            peer[1].write(whole[start : start + 1000])
            await peer[1].drain()
        assert (await told(peer)).startswith(b"HTTP/1.1 200 ")


LONG = {
    "a path": b"/hooks/" + b"a" * LONGEST_ADDRESS,
    "a query": b"/hooks/a?wait=" + b"1" * LONGEST_ADDRESS,
    "parameters": b"/hooks/a?" + b"a&" * MOST_PARAMETERS,
}


@pytest.mark.rule("SRV-1")
@pytest.mark.parametrize("what", LONG)
async def test_an_address_that_is_too_long_is_read_by_nobody(what: str) -> None:
    before = parse_query_string.cache_info().misses
    async with strangers() as (url, [peer]):
        peer[1].write(b"POST " + LONG[what] + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await told(peer)).startswith(b"HTTP/1.1 400 ")
        assert await is_well(url)
    assert parse_query_string.cache_info().misses == before, "the framework keeps what it reads"


async def test_an_address_of_ordinary_size_is_taken() -> None:
    query = b"text=" + b"%C3%A4" * 500 + b"&a=1" * (MOST_PARAMETERS - 2)
    async with strangers() as (_, [peer]):
        peer[1].write(
            HEAD.replace(b"/healthz", b"/healthz?" + query) + b"Connection: close\r\n\r\n"
        )
        assert (await told(peer)).startswith(b"HTTP/1.1 200 ")


HALVES = {
    "nothing": b"",
    "half a head": HEAD,
    "empty lines": b"\r\n\r\n",
    "half a body": POST + b"Content-Length: 100\r\n\r\nname",
    "a head after a request": HEAD + b"\r\n" + HEAD,
    "empty lines after a request": HEAD + b"\r\n\r\n\r\n",
}


@pytest.mark.usefixtures("hasty")
@pytest.mark.rule("SRV-1")
@pytest.mark.parametrize("what", HALVES)
async def test_half_a_request_is_not_waited_for_for_ever(what: str) -> None:
    async with strangers() as (url, [peer]):
        peer[1].write(HALVES[what])
        await told(peer)  # comes back when the server has closed
        assert await is_well(url)


@pytest.mark.usefixtures("hasty")
async def test_who_has_no_token_cannot_stay_by_a_body_that_drips() -> None:
    async with strangers(auth=True) as (_, [peer]):
        peer[1].write(POST + b"Content-Length: 1000000\r\n\r\n")
        assert (await peer[0].readline()).startswith(b"HTTP/1.1 401 ")
        ended = asyncio.ensure_future(told(peer))
        while not ended.done():
            peer[1].write(b"a")
            await asyncio.wait([ended], timeout=0.02)


@pytest.mark.usefixtures("hasty")
@pytest.mark.rule("SRV-1")
async def test_nor_where_no_token_is_asked_for() -> None:
    """Signing in and webhooks read a body before anybody has proved anything."""
    async with strangers(auth=True) as (_, [peer]):
        peer[1].write(OPEN + b"Content-Length: 60000\r\n\r\n")
        ended = asyncio.ensure_future(told(peer))
        while not ended.done():
            peer[1].write(b" ")
            await asyncio.wait([ended], timeout=0.02)
        assert ended.result() == b""


async def test_bodies_of_strangers_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that, so many bodies that drip keep everybody else out."""
    monkeypatch.setattr(intake, "MOST", 20)
    async with strangers(auth=True) as (url, _):
        port = int(url.rpartition(":")[2])
        peers = []
        for _ in range(60):
            peer = await asyncio.open_connection("127.0.0.1", port)
            peer[1].write(OPEN + b"Content-Length: 60000\r\n\r\n{")
            peers.append(peer)
            assert len(peers) % 10 or await is_well(url)
        for peer in peers[:30]:
            await told(peer)
        for _, writer in peers:
            writer.close()


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("auth", [True, False])
async def test_who_is_known_may_take_his_time(auth: bool) -> None:
    """As long as something comes: a worker may have gigabytes to bring."""
    plane = SmallPlane()
    token = (await make_token(plane.storage.tokens, "ada", "viewer")).token

    async def dripping() -> AsyncIterator[bytes]:
        clock = asyncio.get_running_loop().time
        until = clock() + 2 * intake.STRANGE_WITHIN
        while clock() < until:
            yield b" "
            await asyncio.sleep(0)  # no thread: a busy machine may be late to give it a turn

    async with served(plane, auth=auth) as found, aiohttp.ClientSession() as session:
        asked = session.post(
            f"{found.url}/api/validate",
            data=dripping(),
            headers={"authorization": f"Bearer {token}", "content-type": "text/yaml"},
        )
        async with asked as answer:
            assert answer.status == 200


async def test_who_goes_away_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async with strangers(auth=True) as (url, [peer]):
        peer[1].write(OPEN + b"Content-Length: 60000\r\n\r\n{")
        peer[1].write_eof()
        await told(peer)
        assert await is_well(url)
    assert caplog.records == []


@pytest.mark.usefixtures("hasty")
async def test_a_request_under_way_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "HEAD_WITHIN", 0.05)
    async with strangers() as (url, _), aiohttp.ClientSession() as session:
        asked = {"worker": "w", "wait": "0.5"}
        async with session.get(f"{url}/api/worker/wake", params=asked) as answer:
            assert answer.status == 200


@pytest.mark.rule("SRV-1")
async def test_three_hundred_half_requests_stop_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that have waited longest make room; what is served stays."""
    monkeypatch.setattr(intake, "MOST", 50)
    async with strangers() as (url, _), aiohttp.ClientSession() as session:
        asked = {"worker": "w", "wait": "5"}
        served_one = asyncio.ensure_future(session.get(f"{url}/api/worker/wake", params=asked))
        port = int(url.rpartition(":")[2])
        peers = []
        for _ in range(300):
            peer = await asyncio.open_connection("127.0.0.1", port)
            peer[1].write(HEAD)
            peers.append(peer)
            if len(peers) % 50 == 0:
                assert await is_well(url)
        for peer in peers[:200]:
            await told(peer)
        assert not served_one.done()
        served_one.cancel()
        for _, writer in peers:
            writer.close()


@pytest.mark.usefixtures("hasty")
async def test_who_does_not_read_is_not_waited_for_for_ever() -> None:
    """It would have its place until it ends, and all that was written for it in memory."""
    async with strangers() as (_, [(_, writer)]):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        while not writer.transport.is_closing():
            writer.write(HEAD.replace(b"healthz", b"openapi.json") + b"\r\n")
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    "sent", [HEAD + b"\r\n", POST + b"Content-Length: 9\r\n\r\n{"], ids=["answered", "half a body"]
)
async def test_who_was_answered_makes_room(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Strangers without a token who stay, with or without the rest of a body."""
    monkeypatch.setattr(intake, "MOST", 20)
    async with strangers(60, auth=True) as (url, peers):
        for reader, writer in peers[-20:]:
            writer.write(sent)
            await reader.readline()
        assert await is_well(url)


async def test_where_everybody_is_served_the_next_one_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(intake, "MOST", 3)
    plane = SmallPlane()
    async with served(plane) as found, aiohttp.ClientSession() as session:
        (wakes,) = plane.dispatcher.notifiers
        asked = [
            asyncio.ensure_future(
                session.get(f"{found.url}/api/worker/wake", params={"worker": f"w{n}", "wait": "9"})
            )
            for n in range(3)
        ]
        while wakes.waiting < 3:
            await asyncio.sleep(0)
        port = int(found.url.rpartition(":")[2])
        late = await asyncio.open_connection("127.0.0.1", port)
        assert (await told(late)).startswith(b"HTTP/1.1 503 ")
        late[1].close()
        for one in asked:
            one.cancel()


@asynccontextmanager
async def dripping(count: int, size: int) -> AsyncIterator[tuple[str, list[Peer]]]:
    """So many requests of one viewer whose bodies do not come to their end."""
    plane = SmallPlane()
    token = (await make_token(plane.storage.tokens, "ada", "viewer")).token.encode()
    head = b"Authorization: Bearer %b\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    async with served(plane, auth=True) as found, asyncio.timeout(PATIENCE):
        port = int(found.url.rpartition(":")[2])
        peers = []
        for _ in range(count):
            peer = await asyncio.open_connection("127.0.0.1", port)
            peer[1].write(POST + head % (token, size + 1))
            assert b" 100 " in await peer[0].readuntil(b"\r\n\r\n"), "the gate let it in"
            peer[1].write(b" " * size)
            await peer[1].drain()
            peers.append(peer)
        yield found.url, peers
        for _, writer in peers:
            writer.close()


@pytest.mark.rule("SRV-1")
async def test_bodies_that_wait_for_their_end_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A viewer had as many megabytes of the server as he opened connections, for ever."""
    monkeypatch.setattr(intake, "MOST_HELD", 350_000)
    async with dripping(8, 100_000) as (url, peers):
        for peer in peers[:5]:
            assert await told(peer) == b"", "whoever has taken longest makes room"
        assert await is_well(url)
        for reader, writer in peers[5:]:
            writer.write(b" ")  # the end of a body
            assert b" 200 " in await reader.readline()


async def test_what_was_answered_is_not_held_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "MOST_HELD", 150_000)
    plane = SmallPlane()
    async with served(plane) as found, aiohttp.ClientSession() as session:
        for _ in range(5):
            asked = session.post(
                f"{found.url}/api/validate",
                data=b" " * 100_000,
                headers={"content-type": "text/yaml"},
            )
            async with asked as answer:
                assert answer.status == 200


async def answer_to(body: bytes, piece: int = 100_000) -> bytes:
    """What is said to a body that comes in such pieces."""
    async with strangers() as (url, [(reader, writer)]):
        writer.write(OPEN.replace(b"sign-in", b"executions"))
        writer.write(b"Transfer-Encoding: chunked\r\n\r\n")
        for start in range(0, len(body), piece):
            part = body[start : start + piece]
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
        writer.write(b"0\r\n\r\n")
        said = await reader.readuntil(b"\r\n\r\n")
        said += await reader.read(10_000)
        assert await is_well(url)
        return said


MANY = MOST_VALUES + 2
VALUES = {
    "numbers": b"[%b]" % b",".join([b"1"] * MANY),
    "floats": b"[%b]" % b",".join([b"1e-7"] * MANY),
    "texts": b"[%b]" % b",".join([rb'"a,\",b"'] * MANY),
    "keys": b"{%b}" % b",".join(b'"%d":1' % number for number in range(MANY)),
    "mappings": b"[%b]" % b",".join([b'{"a":1}'] * (MANY // 2 + 1)),
    "blanks": b"[%b1]" % (b" " * MOST_BARE),
}


@pytest.mark.rule("SRV-1")
@pytest.mark.parametrize("what", VALUES)
async def test_a_body_of_very_many_values_is_not_read(what: str) -> None:
    """Each of them is made in one go with all others, and nobody else has a turn meanwhile."""
    said = await answer_to(VALUES[what])
    assert said.startswith(b"HTTP/1.1 413 ")
    assert b'"too_detailed"' in said


async def test_a_long_text_is_no_number_of_values() -> None:
    quoted = rb"\n\"quoted\","
    table = b"1,2.5,[x],{y}," * 50_000 + quoted * 100_000 + b"8" * 300_000
    assert (await answer_to(b'["%b"]' % table)).startswith(b"HTTP/1.1 422 ")


@pytest.mark.rule("SRV-1")
@pytest.mark.parametrize(("count", "status"), [(100, b" 422 "), (101, b" 413 ")])
@pytest.mark.parametrize("piece", [50, 199, 1_000_000])
async def test_a_body_of_very_long_numbers_is_not_read(
    piece: int, count: int, status: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To read and to write a number takes the square of its digits."""
    monkeypatch.setattr(details, "MOST_LONG", 100)
    numbers = [b"7" * 400] * (count // 2) + [b"-" + b"8" * 200] * (count % 2)
    short = [b"9" * 199] * 20
    said = await answer_to(b"[" + b",".join(numbers + short) + b"]", piece)
    assert status in said.partition(b"\r\n")[0]


@pytest.mark.rule("SRV-1")
async def test_nobody_has_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "MOST", 16)
    async with dripping(16, 1) as (url, peers):
        for _ in range(8):
            assert await is_well(url)
        ended = [asyncio.ensure_future(told(peer)) for peer in peers]
        await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
        for one in ended:
            one.cancel()


@pytest.mark.rule("SRV-1")
async def test_to_make_room_few_connections_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each new one went through all others: strangers beyond the limit took four times as much."""
    looks = 0
    waits = Intake.is_waiting

    def counted(one: Intake) -> bool:
        nonlocal looks
        looks += 1
        return waits(one)

    monkeypatch.setattr(Intake, "is_waiting", counted)
    monkeypatch.setattr(intake, "MOST", 50)
    async with strangers(250) as (url, peers):
        for _, writer in peers:
            writer.write(HEAD)
        assert await is_well(url)
        assert looks < 3 * len(peers)


def test_files_are_left_for_the_log() -> None:
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
    try:
        assert most_connections() == 128
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
