"""Who gets the connections that are made to a server with shards (decision 0093)."""

import asyncio
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from itertools import islice

import pytest
from tests.support.slowness import SLOWNESS

from noetl.api.handed import ENDED, READY, TAKEN, Handed, from_standard_input
from noetl.api.serve import listen
from noetl.cli.background.door import UNTAKEN, ShardDoor

HOST = "127.0.0.1"
PATIENCE = 30.0 * SLOWNESS
"""Seconds before what is lost fails its test."""
MANY = 700
"""More than the kernel keeps of words that nobody has heard."""


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


async def test_connections_that_end_at_once_leave_the_shards_alike() -> None:
    async with a_house() as house:
        house.shard("a")
        callers = [await house.call() for _ in range(MANY)]
        for _, writer in callers:  # all in one turn of the loop, in which no door listens
            writer.transport.abort()
        house.shard("b")
        found = await house.calls(20, stay=True)
        assert found == {"a": 10, "b": 10}


async def test_no_word_of_a_shard_is_lost_however_late_the_door_listens() -> None:
    door, theirs = socket.socketpair()
    ended = asyncio.Event()
    counted = Counter[str]()

    def make(over: Callable[[], None]) -> asyncio.Protocol:
        counted["made"] += 1

        def its_end() -> None:
            over()
            ended.set()

        return Named("a", its_end)

    with door, socket.create_server((HOST, 0)) as listening:
        handed = Handed(theirs, ended.set)
        handed.begin(make)
        for number in range(MANY):
            with socket.create_connection(listening.getsockname()), listening.accept()[0] as one:
                await asyncio.to_thread(socket.send_fds, door, [b"c"], [one.fileno()])
            ended.clear()
            await ended.wait()
            assert counted["made"] == number + 1
        door.setblocking(False)
        said, loop = b"", asyncio.get_running_loop()
        async with asyncio.timeout(PATIENCE):
            while len(said) < 1 + 2 * MANY:
                said += await loop.sock_recv(door, 4096)
        handed.end()
    assert (said.count(TAKEN), said.count(ENDED)) == (MANY, MANY)


CROWDED = """
import asyncio, os, resource, socket, sys
from noetl.api.handed import READY
from noetl.api.serve import listen
from noetl.cli.background.door import ShardDoor

async def main():
    if os.geteuid() == 0:  # nobody counts the files of root
        os.setgid(64321)
        os.setuid(64321)
    listening = listen("127.0.0.1", 0)
    door = ShardDoor(listening)
    with door.place() as fd:
        shard = socket.socket(fileno=os.dup(fd))
    shard.sendall(READY)
    shard.setblocking(False)
    here, there = socket.socketpair()
    for _ in range(70):
        socket.send_fds(here, [b"."], [0])
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    loop = asyncio.get_running_loop()
    tries = asyncio.Event()
    handing = door._hand
    def hand(connection):
        handed = handing(connection)
        tries.set()
        return handed
    door._hand = hand
    with socket.socket() as caller:
        caller.connect(listening.getsockname())
        await tries.wait()
        try:
            print("got", shard.recv(1), flush=True)
        except BlockingIOError:
            print("not now", flush=True)
        for _ in range(70):
            _, told, _, _ = socket.recv_fds(there, 1, 1)
            os.close(*told)
        print("then", await loop.sock_recv(shard, 1))

asyncio.run(main())
"""


def test_files_that_somebody_else_has_on_their_way_end_no_shard() -> None:
    """As a task of the same user can: the kernel counts them for all of his processes together."""
    said = subprocess.run(
        [sys.executable, "-c", CROWDED], capture_output=True, text=True, timeout=600, check=True
    )
    assert said.stdout == "not now\nthen b'c'\n"


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
