"""Who gets the connections that are made to a server with shards (decision 0093)."""

import asyncio
import os
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from itertools import islice

import pytest

from noetl.api.handed import READY, Handed, from_standard_input
from noetl.api.serve import listen
from noetl.cli.background.door import UNTAKEN, ShardDoor

HOST = "127.0.0.1"


class Named(asyncio.Protocol):
    """Says the name of its shard to whoever connects."""

    def __init__(self, name: str, over: Callable[[], None]) -> None:
        self._name, self._over = name, over

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        fd = transport.get_extra_info("socket").fileno()
        transport.write(b"%b%d" % (self._name.encode(), os.get_inheritable(fd)))

    def connection_lost(self, _: Exception | None) -> None:
        self._over()


class House:
    """A door with shards that are in this process."""

    def __init__(self) -> None:
        listening = listen(HOST, 0)
        self.port = listening.getsockname()[1]
        self.door = ShardDoor(listening)
        self.opened = ExitStack()
        self.gone = asyncio.Event()

    def channel(self) -> socket.socket:
        with self.door.place() as fd:
            return self.opened.enter_context(socket.socket(fileno=os.dup(fd)))

    def shard(self, name: str) -> Handed:
        handed = Handed(self.channel(), self.gone.set)
        handed.begin(lambda over: Named(name, over))
        return handed

    async def call(self) -> tuple[str, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(HOST, self.port)
        said = (await reader.readexactly(2)).decode()
        assert said[1] == "0", "a child would hold the connection"
        return said[0], writer

    async def answer(self) -> bytes:
        """What is said to one who calls and stays."""
        caller = self.opened.enter_context(socket.socket())
        caller.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(caller, (HOST, self.port))
        return await loop.sock_recv(caller, 2)

    async def calls(self, count: int, *, stay: bool) -> Counter[str]:
        """Who answered so many calls, one after the other."""
        found: Counter[str] = Counter()
        for _ in range(count):
            name, writer = await self.call()
            found[name] += 1
            self.opened.callback(writer.close)
            if not stay:
                writer.close()
                await writer.wait_closed()
        return found


@asynccontextmanager
async def a_house() -> AsyncIterator[House]:
    made = House()
    yield made
    made.opened.close()
    made.door.close()


@pytest.mark.parametrize("stay", [True, False])
async def test_shards_get_as_many_connections(stay: bool) -> None:
    async with a_house() as house:
        for name in "abc":
            house.shard(name)
        found = await house.calls(60, stay=stay)
        assert sorted(found) == ["a", "b", "c"]
        assert max(found.values()) - min(found.values()) <= 6


async def test_one_that_was_started_again_gets_those_that_come() -> None:
    async with a_house() as house:
        house.shard("a")
        await house.calls(8, stay=True)
        house.shard("b")
        assert await house.calls(8, stay=True) == {"b": 8}, "until both have as many"


async def test_one_that_is_gone_gets_nothing() -> None:
    async with a_house() as house:
        house.shard("a").end()
        house.shard("b")
        assert await house.calls(4, stay=True) == {"b": 4}


async def test_one_that_takes_nothing_gets_only_so_many() -> None:
    async with a_house() as house:
        stuck = house.channel()
        stuck.sendall(READY)
        house.shard("b")
        answers = [asyncio.ensure_future(house.answer()) for _ in range(4 * UNTAKEN)]
        for answer in islice(asyncio.as_completed(answers), 3 * UNTAKEN):
            assert (await answer)[:1] == b"b"
        for left in answers:
            left.cancel()
        await asyncio.gather(*answers, return_exceptions=True)


async def test_who_calls_before_a_shard_is_ready_waits_for_it() -> None:
    async with a_house() as house:
        calling = asyncio.ensure_future(house.call())
        _, writer = await asyncio.open_connection(HOST, house.port)  # the kernel takes it
        house.shard("a")
        name, other = await calling
        assert name == "a"
        other.close()
        writer.close()


async def test_a_shard_learns_that_the_door_is_gone() -> None:
    async with a_house() as house:
        house.shard("a")
        await house.calls(1, stay=False)
        house.door.close()
        await house.gone.wait()


def test_children_of_a_shard_find_nothing_at_their_input() -> None:
    here, there = socket.socketpair()
    kept = os.dup(0)
    try:
        os.dup2(there.fileno(), 0)
        with from_standard_input() as channel, here, there:
            assert not os.get_inheritable(channel.fileno())
            assert os.readlink("/proc/self/fd/0") == "/dev/null"
            here.sendall(b"c")
            assert channel.recv(1) == b"c"
    finally:
        os.dup2(kept, 0)
        os.close(kept)
