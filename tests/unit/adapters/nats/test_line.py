"""Lines that come back by themselves."""

import asyncio
from contextlib import suppress

import pytest
from tests.contracts.lines import Desk, call
from tests.support.proxy import between
from tests.unit.adapters.nats.network import SOON, Network

from noetl.adapters.nats import line as lines
from noetl.adapters.nats.line import place_of
from noetl.errors import ServerAway


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("nats://127.0.0.1:4333", "127.0.0.1:4333"),
        ("nats://user:secret@host", "host:4222"),
        ("tls://token@host:1", "host:1"),
        ("host:7", "host:7"),
    ],
)
def test_a_place_shows_no_password(url: str, place: str) -> None:
    assert place_of(url) == place


async def test_nats_that_is_absent_is_waited_for(alone: Network) -> None:
    alone.server.stop()
    link = alone.link(url=alone.server.url.replace("//", "//user:secret@"))
    opening = asyncio.ensure_future(link.open())
    waiting = await alone.until_said("waiting for NATS at 127.0.0.1:")
    assert "refused" in waiting or "Connect call failed" in waiting
    assert not opening.done()
    assert alone.server.start()
    await opening
    assert alone.said[-1] == f"connected to NATS at 127.0.0.1:{alone.server.port}"
    assert len(alone.said) == len(set(alone.said)), "nothing is said twice in a row"
    assert "secret" not in "".join(alone.said)


async def test_waiting_for_nats_can_be_given_up(alone: Network) -> None:
    alone.server.stop()
    opening = asyncio.ensure_future(alone.link().open())
    await alone.until_said("waiting for NATS")
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening


async def test_a_lost_line_ends_what_is_under_way_and_comes_back(alone: Network) -> None:
    desk = Desk()
    desk.held[1] = asyncio.Event()
    await alone.serve(desk)
    link = await alone.opened()
    pending = asyncio.ensure_future(link.call("s1", call(1)))
    await desk.came.wait()
    alone.server.stop()
    with pytest.raises(ServerAway, match=r"the connection to NATS at .* was lost"):
        await pending
    later = [asyncio.ensure_future(link.call("s1", call(number))) for number in (2, 3, 4)]
    assert alone.server.start()
    # The server may come back after the worker: then nobody listens yet, and one asks again.
    for number, waiting in zip((2, 3, 4), later, strict=True):
        while True:
            try:
                assert (await waiting).tidy == [str(number)]
                break
            except ServerAway:
                waiting = asyncio.ensure_future(link.call("s1", call(number)))
    desk.held[1].set()
    assert sum("is lost; trying again" in text for text in alone.said) == 2


async def test_calls_without_a_line_end_in_time(alone: Network) -> None:
    link = await alone.opened(patience=0.1)
    alone.server.stop()
    await alone.until_said("is lost")
    calls = [link.call("s1", call(number)) for number in range(3)]
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(outcome, ServerAway)
        assert str(outcome) == "server 's1' did not answer within 0.1 s"


async def test_a_connection_that_the_library_gave_up_is_made_anew(network: Network) -> None:
    board = await network.serve(Desk())
    link = await network.opened(poll=0.05)
    assert await link.wake("w", "default", hungry=True) == "s1"
    for line in (link.line, board.line):
        await line.client.close()
        await asyncio.wait_for(line.up.wait(), 30)
    assert (await link.call("s1", call(1))).tidy == ["1"]
    assert await link.wake("w", "default", hungry=True) == "s1"
    assert sum("is lost; trying again" in text for text in network.said) == 2


async def test_what_listens_may_fail(network: Network) -> None:
    link = await network.opened()
    heard: list[bytes] = []
    came = asyncio.Event()

    def hear(message: object) -> None:
        heard.append(message.data)  # type: ignore[attr-defined]
        came.set()
        raise ValueError("a fault of ours")

    await link.line.listen("sub.ject", hear)
    for payload in (b"1", b"2"):
        came.clear()
        await link.line.publish("sub.ject", payload)
        await came.wait()
    assert heard == [b"1", b"2"]
    assert sum("a fault of ours" in text for text in network.said) == 1


async def test_background_work_that_fails_is_said(network: Network) -> None:
    link = await network.opened()

    async def fail() -> None:
        raise RuntimeError("it broke")

    link.line.start(fail())
    assert await network.until_said("it broke")


async def test_after_close_there_is_no_line(network: Network) -> None:
    await network.serve(Desk())
    link = await network.opened(patience=0.1)
    await link.close()
    with pytest.raises(ServerAway):
        await link.call("s1", call(1))


LARGE = b"x" * 900_000
MANY = 20
"""More than the kernel keeps for a line that takes nothing."""


@pytest.mark.parametrize("unsent", [0, MANY], ids=["nothing", "much"])
async def test_a_silent_connection_is_given_up_with_what_it_did_not_take(
    network: Network, monkeypatch: pytest.MonkeyPatch, unsent: int
) -> None:
    """As behind a firewall that has forgotten it: nothing passes any more, and nothing closes."""
    monkeypatch.setattr(lines, "PING", 0.2)
    desk = Desk()
    await network.serve(desk)
    with between(network.server.port) as proxy:
        link = network.link(url=f"nats://127.0.0.1:{proxy.port}")
        await link.open()
        assert (await link.call("s1", call(1))).tidy == ["1"]
        proxy.forget()
        for _ in range(unsent):
            await link.line.publish("nobody.listens", LARGE)
        await network.until_said("is lost; trying again")
        assert (await link.call("s1", call(2))).tidy == ["2"]
        await link.close()


async def passes(seconds: float) -> None:
    """A time that must pass for the fault to be one."""
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), seconds)


async def test_a_line_that_comes_and_goes_leaves_nothing_behind(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes at any moment of a new connection, too: no task reads or pings an old one."""
    monkeypatch.setattr(lines, "CONNECT", 0.3)
    monkeypatch.setattr(lines, "PING", 0.2)
    await network.serve(Desk())
    with between(network.server.port) as proxy:
        link = network.link(url=f"nats://127.0.0.1:{proxy.port}", patience=1.0)
        await link.open()
        tasks = len(asyncio.all_tasks())
        for number in range(12):
            proxy.cut()
            await passes(0.1 * number)
            proxy.fix()
            await passes(0.002 * number)
        proxy.break_()
        proxy.fix()
        while True:
            try:
                assert (await link.call("s1", call(2))).tidy == ["2"]
                break
            except ServerAway:
                continue
        async with asyncio.timeout(SOON):
            while len(asyncio.all_tasks()) > tasks:
                await asyncio.sleep(0)
        await link.close()
