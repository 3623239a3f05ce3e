"""The API on a real socket: where it listens, how it begins and how it stops."""

import asyncio
import socket

import aiohttp
import pytest
from tests.support.api import SmallPlane, begin, served

from noetl.api.serve import listen, refuse_open, url_of
from noetl.errors import SettingRefused


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_this_machine_alone_needs_no_auth(host: str) -> None:
    refuse_open(host, auth=False)
    refuse_open(host, auth=True)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.1", "127.0.0.1.example", "db"])
def test_any_other_address_needs_auth(host: str) -> None:
    refuse_open(host, auth=True)
    with pytest.raises(SettingRefused, match="auth is off"):
        refuse_open(host, auth=False)


def test_a_port_that_is_taken_is_refused_in_words() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingRefused, match=f"cannot listen on 127.0.0.1:{port}: .*--port"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize(("host", "port"), [("no.such.host.invalid", 0), ("127.0.0.1", 70_000)])
def test_what_is_no_address_is_refused_in_words(host: str, port: int) -> None:
    with pytest.raises(SettingRefused, match="cannot listen on"):
        listen(host, port)


@pytest.mark.parametrize(
    ("host", "url"), [("127.0.0.1", "http://127.0.0.1:5"), ("::1", "http://[::1]:5")]
)
def test_the_url_is_one_that_others_can_use(host: str, url: str) -> None:
    assert url_of(host, 5) == url


async def test_a_server_says_where_it_is_and_answers() -> None:
    plane = SmallPlane()
    async with served(plane) as found, aiohttp.ClientSession() as session:
        assert found.url == plane.address
        async with session.get(f"{found.url}/healthz") as answer:
            assert await answer.json() == {"status": "ok"}
            assert "server" not in answer.headers
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(found.url.rpartition(":")[2])))


async def test_small_answers_are_not_held_back() -> None:
    """An accepted connection has the protocol of the socket that listens, and so no delay."""
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP


async def test_readiness_follows_the_plane_and_tells_nothing_of_it() -> None:
    plane = SmallPlane()
    async with served(plane) as found, aiohttp.ClientSession() as session:
        plane.waits_for = ["postgresql://me:secret@db"]
        async with session.get(f"{found.url}/readyz") as answer:
            assert (answer.status, await answer.json()) == (503, {"status": "waiting"})
        async with session.get(f"{found.url}/healthz") as answer:
            assert answer.status == 200


async def test_a_stop_ends_long_polls_at_once() -> None:
    plane = SmallPlane()
    found = await begin(plane)
    (wakes,) = plane.dispatcher.notifiers
    async with aiohttp.ClientSession() as session:
        asked = {"worker": "w", "wait": "30"}
        waiting = asyncio.ensure_future(session.get(f"{found.url}/api/worker/wake", params=asked))
        while not wakes.waiting:
            await asyncio.sleep(0)
        found.stop.set()
        async with await waiting as answer:
            assert (await answer.json())["rung"] is False
    await asyncio.wait_for(found.task, 9)  # less than the grace for requests that do not end


async def test_a_worker_that_vanishes_waits_no_more() -> None:
    plane = SmallPlane()
    async with served(plane) as found:
        (wakes,) = plane.dispatcher.notifiers
        async with aiohttp.ClientSession() as session:
            asked = {"worker": "w", "wait": "30"}
            waiting = asyncio.ensure_future(
                session.get(f"{found.url}/api/worker/wake", params=asked)
            )
            while not wakes.waiting:
                await asyncio.sleep(0)
            waiting.cancel()
        while wakes.waiting:
            await asyncio.sleep(0)


async def test_a_call_is_answered_though_its_worker_has_vanished() -> None:
    """What was decided is decided: the reports in it are recorded all the same."""
    plane = SmallPlane()
    begun, go_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    usual = plane.dispatcher.answer

    async def slow(call: object, by: object) -> object:
        begun.set()
        await go_on.wait()
        ended.set()
        return await usual(call, by)

    plane.dispatcher.answer = slow
    async with served(plane) as found:
        async with aiohttp.ClientSession() as session:
            call = {"worker": "w", "pool": "p", "version": "1"}
            sent = asyncio.ensure_future(session.post(f"{found.url}/api/worker/calls", json=call))
            await begun.wait()
            (await sent).close()
        go_on.set()
        await ended.wait()
