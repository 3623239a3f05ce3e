"""The work queue: one ring for many parts, one worker for a ring, and a queue that is lost."""

import asyncio

import pytest
from tests.contracts.lines import Desk, call
from tests.unit.adapters.nats.network import SOON, Network, until

from noetl.adapters.nats import stream as stream_module
from noetl.adapters.nats.library import api, stream_errors
from noetl.adapters.nats.stream import make_stream
from noetl.errors import ServerAway


async def test_rings_that_come_at_once_are_one(network: Network) -> None:
    board = await network.serve(Desk())
    stream = await network.stream()
    for parts in (3, 900, 5):
        for _ in range(100):
            board.notifier.wake_pool("default", parts)

    async def rung() -> bool:
        return bool((await stream.stream_info(network.names.stream)).state.messages)

    await until(rung)
    state = (await stream.stream_info(network.names.stream)).state
    assert (state.messages, state.last_seq) == (1, 1)
    kept = await stream.get_msg(network.names.stream, 1)
    assert kept.subject == network.names.rings("default", "s1")
    assert kept.data == b"s1"
    assert kept.headers is not None
    assert kept.headers["Noetl-Parts"] == "900"
    again = await stream.publish(kept.subject, kept.data, headers=kept.headers)
    assert again.duplicate, "a ring that comes twice is one"


async def test_a_later_ring_replaces_one_that_nobody_took(network: Network) -> None:
    board = await network.serve(Desk())
    other = await network.serve(Desk("s2"))
    stream = await network.stream()
    for number in range(1, 4):
        board.notifier.wake_pool("default", number)

        async def rung(number: int = number) -> bool:
            return (await stream.stream_info(network.names.stream)).state.last_seq == number

        await until(rung)
    other.notifier.wake_pool("default", 1)
    board.notifier.wake_pool("another.pool", 1)

    async def all_rung() -> bool:
        return (await stream.stream_info(network.names.stream)).state.last_seq == 5

    await until(all_rung)
    assert (await stream.stream_info(network.names.stream)).state.messages == 3


async def test_a_ring_is_over_when_the_worker_has_called(network: Network) -> None:
    board = await network.serve(Desk())
    link = await network.opened()
    stream = await network.stream()
    board.notifier.wake_pool("default", 1)
    assert await link.wake("w", "default", hungry=True) == "s1"
    assert (await stream.stream_info(network.names.stream)).state.messages == 1
    await link.call("s1", call(1))

    async def over() -> bool:
        return (await stream.stream_info(network.names.stream)).state.messages == 0

    await until(over)


async def test_a_worker_that_dies_after_the_ring_leaves_it_to_another(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "ACK_WAIT", 0.2)
    board = await network.serve(Desk())
    dying, living = await network.opened(), await network.opened()
    board.notifier.wake_pool("default", 1)
    assert await dying.wake("w1", "default", hungry=True) == "s1"
    await dying.close()
    assert await asyncio.wait_for(living.wake("w2", "default", hungry=True), SOON) == "s1"


async def test_a_ring_for_who_has_had_his_fill_goes_to_another(network: Network) -> None:
    board = await network.serve(Desk())
    full, hungry = await network.opened(), await network.opened()
    pulling = asyncio.ensure_future(full.wake("w1", "default", hungry=True))
    stream = await network.stream()

    async def pulled() -> bool:
        try:
            found = await stream.consumer_info(network.names.stream, "default")
        except stream_errors.NotFoundError:
            return False
        return bool(found.num_waiting == 1)

    await until(pulled)
    pulling.cancel()  # its pull stays with the server, and is first in line
    sleeping = asyncio.ensure_future(hungry.wake("w2", "default", hungry=True))
    board.notifier.wake_pool("default", 1)
    assert await asyncio.wait_for(sleeping, SOON) == "s1"


async def test_rings_that_were_taken_and_not_wanted_go_back(network: Network) -> None:
    board = await network.serve(Desk())
    link, other = await network.opened(), await network.opened()
    board.notifier.wake_pool("default", 1)
    sleeping = asyncio.ensure_future(link.wake("w1", "default", hungry=True))
    while not link._wakes._rings and not sleeping.done():
        await asyncio.wait([sleeping], timeout=0.01)
    if not sleeping.done():
        sleeping.cancel()
    full = asyncio.ensure_future(link.wake("w1", "default", hungry=False))
    board.notifier.wake_pool("default", 1)
    assert await asyncio.wait_for(other.wake("w2", "default", hungry=True), SOON) == "s1"
    full.cancel()


async def test_a_ring_of_a_server_that_is_gone_is_over_too(network: Network) -> None:
    board = await network.serve(Desk())
    link = await network.opened()
    stream = await network.stream()
    board.notifier.wake_pool("default", 1)
    assert await link.wake("w", "default", hungry=True) == "s1"
    await board.close()
    with pytest.raises(ServerAway):
        await link.call("s1", call(1))

    async def over() -> bool:
        return (await stream.stream_info(network.names.stream)).state.messages == 0

    await until(over)


@pytest.mark.rule("WRK-1")
@pytest.mark.parametrize("polled", [False, True])
async def test_a_wiped_store_is_made_again(alone: Network, polled: bool) -> None:
    """T5: NATS restarts with nothing in its store."""
    board = await alone.serve(Desk())
    link = await alone.opened(poll=0.05 if polled else SOON)
    board.notifier.wake_pool("default", 1)
    assert await link.wake("w", "default", hungry=True) == "s1"
    alone.server.stop()
    await alone.until_said("is lost")
    board.notifier.wake_pool("default", 1)
    board.notifier.wake_worker("w")  # neither raises nor waits
    assert alone.server.start()
    for line in (board.line, link.line):
        await asyncio.wait_for(line.up.wait(), SOON)
    sleeping = asyncio.ensure_future(link.wake("w", "default", hungry=True))
    if not polled:
        board.notifier.wake_pool("default", 1)
    assert await asyncio.wait_for(sleeping, SOON) == "s1"
    board.notifier.wake_pool("default", 1)
    stream = await alone.stream()

    async def there() -> bool:
        try:
            return (await stream.stream_info(alone.names.stream)).state.last_seq > 0
        except stream_errors.NotFoundError:
            return False

    await until(there)


@pytest.mark.parametrize("gone", ["stream", "consumer"])
async def test_what_somebody_deleted_is_made_again(network: Network, gone: str) -> None:
    board = await network.serve(Desk())
    link = await network.opened()
    stream = await network.stream()
    board.notifier.wake_pool("default", 1)
    assert await link.wake("w", "default", hungry=True) == "s1"
    await link.call("s1", call(1))
    if gone == "stream":
        await stream.delete_stream(network.names.stream)
    else:
        await stream.delete_consumer(network.names.stream, "default")
    board.notifier.wake_pool("default", 1)
    assert await asyncio.wait_for(link.wake("w", "default", hungry=True), SOON) == "s1"


async def test_without_jetstream_workers_poll_and_are_told(without_jetstream: Network) -> None:
    network = without_jetstream
    board = await network.serve(Desk())
    link = await network.opened(poll=0.05)
    board.notifier.wake_pool("default", 1)
    for _ in range(3):
        assert await link.wake("w", "default", hungry=True) == "s1"
    assert (await link.call("s1", call(1))).tidy == ["1"]
    told = await network.until_said("JetStream does not answer; start nats-server with it (-js)")
    assert told.endswith("until then workers poll every 2 s")


async def test_a_stream_that_is_set_up_otherwise_is_changed(network: Network) -> None:
    stream = await network.stream()
    names = network.names
    await stream.add_stream(
        name=names.stream,
        subjects=[names.work],
        retention=api.RetentionPolicy.WORK_QUEUE,
        storage=api.StorageType.MEMORY,
    )
    link = await network.opened()
    await make_stream(link.line, names)
    config = (await stream.stream_info(names.stream)).config
    assert (config.max_msgs_per_subject, config.max_age) == (1, 30.0)


async def test_a_stream_of_somebody_else_is_left_alone(network: Network) -> None:
    stream = await network.stream()
    await stream.add_stream(name=f"other{network.names.stream}", subjects=[network.names.work])
    await network.serve(Desk())
    link = await network.opened(poll=0.05)
    assert await link.wake("w", "default", hungry=True) == "s1"
    assert "overlap" in await network.until_said("JetStream refuses: ")


async def test_rubbish_in_the_queue_and_the_inbox_ends_nothing(network: Network) -> None:
    board = await network.serve(Desk())
    link = await network.opened()
    client = await network.client()
    sleeping = asyncio.ensure_future(link.wake("w", "default", hungry=True))
    for subject in (network.names.nudges("w"), network.names.any_roll):
        for rubbish in (b"", b"\xff\xfe"):
            await client.publish(subject, rubbish)
    await client.jetstream().publish(network.names.rings("default", "x"), b"\xff\xfe")
    board.notifier.wake_pool("default", 1)
    while (woken := await asyncio.wait_for(sleeping, SOON)) != "s1":
        sleeping = asyncio.ensure_future(link.wake("w", "default", hungry=True))
    assert woken == "s1"
