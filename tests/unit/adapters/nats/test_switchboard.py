"""A server's end of the line."""

import asyncio

import msgspec
import pytest
from tests.contracts.lines import Desk, call
from tests.unit.adapters.nats.network import Network

from noetl.adapters.nats import switchboard as switchboard_module
from noetl.adapters.nats.library import Msg
from noetl.errors import ServerAway
from noetl.ports.link import Answer


async def test_a_worker_of_another_version_learns_why(network: Network) -> None:
    desk = Desk()
    await network.serve(desk)
    client = await network.client()
    told = b'{"worker": "old", "version": "0.0.1", "pool": 7}'
    answer = await client.request(network.names.calls("s1"), told, timeout=600)
    refusal = msgspec.json.decode(answer.data, type=Answer).refusal
    assert refusal.startswith("the call of worker 'old', version 0.0.1, cannot be read (Expected")
    assert refusal.endswith("run the version of the server")
    assert desk.heard == []


async def test_what_a_server_says_may_be_unreadable(network: Network) -> None:
    client = await network.client()

    async def answer(message: object) -> None:
        await message.respond(b"{")  # type: ignore[attr-defined]

    await client.subscribe(network.names.calls("odd"), cb=answer)
    await client.flush()
    link = await network.opened()
    with pytest.raises(
        ServerAway, match=r"server 'odd' sent something that cannot be read .*same version"
    ):
        await link.call("odd", call(1))


async def test_a_server_that_stops_answers_what_it_began(network: Network) -> None:
    desk = Desk()
    desk.held[1] = asyncio.Event()
    board = await network.serve(desk)
    link = await network.opened()
    pending = asyncio.ensure_future(link.call("s1", call(1)))
    await desk.came.wait()
    stopping = asyncio.ensure_future(board.close())
    await asyncio.wait([stopping], timeout=0.01)
    desk.held[1].set()
    await stopping
    assert (await pending).tidy == ["1"]


async def test_a_server_that_cannot_answer_in_time_says_that_it_stops(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switchboard_module, "FAREWELL", 0.01)
    desk = Desk()
    desk.held[1] = asyncio.Event()
    board = await network.serve(desk)
    link = await network.opened()
    pending = asyncio.ensure_future(link.call("s1", call(1)))
    await desk.came.wait()
    await board.close()
    with pytest.raises(ServerAway, match=r"server 's1' could not answer: it stops"):
        await pending


async def test_an_answer_that_nobody_can_have_is_no_trouble(alone: Network) -> None:
    desk = Desk()
    desk.held[1] = asyncio.Event()
    board = await alone.serve(desk)
    link = await alone.opened()
    pending = asyncio.ensure_future(link.call("s1", call(1)))
    await desk.came.wait()
    alone.server.stop()
    with pytest.raises(ServerAway):
        await pending
    desk.held[1].set()
    while board._answering:
        await asyncio.wait(board._answering)
    assert alone.server.start()
    await asyncio.wait_for(board.line.up.wait(), 30)
    await asyncio.wait_for(link.line.up.wait(), 30)
    assert (await link.call("s1", call(2))).tidy == ["2"]


@pytest.mark.parametrize("root", ["noetl", "an.other"])
async def test_installations_do_not_hear_each_other(network: Network, root: str) -> None:
    desk = Desk()
    await network.serve(desk)
    client = await network.client()
    inbox = f"{network.names.inbox('worker', 'default')}.x"
    await client.publish(f"{root}.server.s1", msgspec.json.encode(call(1)), inbox)
    await client.flush()
    link = await network.opened()
    await link.call("s1", call(2))
    assert [heard.free for heard in desk.heard] == [2]


async def test_a_server_answers_to_workers_alone(network: Network) -> None:
    """Whoever may ask could have it say something anywhere else, as itself."""
    desk, names = Desk(), network.names
    await network.serve(desk)
    client = await network.client()
    elsewhere = [names.calls("s2"), names.inbox("server"), names.nudges("w"), "their.subject"]
    heard: list[str] = []

    async def hear(message: Msg) -> None:
        heard.append(message.subject)

    for subject in elsewhere:
        await client.subscribe(subject, cb=hear)
        for asked in (names.calls("s1"), names.questions("s1"), names.any_ask, names.any_roll):
            told = b"" if asked == names.any_roll else msgspec.json.encode(call(1))
            await client.publish(asked, told, reply=subject)
    await client.flush()
    link = await network.opened()
    assert (await link.call("s1", call(2))).tidy == ["2"]
    assert [one.free for one in desk.heard] == [2]
    await client.flush()
    assert heard == []
