"""
The network between workers and servers: it loses, doubles, delays and cuts.

Calls of one worker to one server arrive in their order (the contract of `Link`), but a second copy
of one may come any time later. Answers come in any order.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import msgspec
from tests.simulation.loop import NODE, Node, SimulatedLoop

from noetl.errors import ServerAway
from noetl.ports.link import ANYBODY, POLL, Answer, Call, Listener, Question, Reply

PATIENCE = 10.0
"""Seconds for an answer."""
REFUSED = 0.01
"""Seconds until a worker knows that nobody listens there."""


class Member(NamedTuple):
    """A server on the network."""

    node: Node
    listener: Listener


class Sleeper(NamedTuple):
    """A worker that waits to be woken."""

    node: Node
    worker: str
    pool: str
    hungry: bool
    woken: "asyncio.Future[str]"


class Network:
    """Who is there, what is cut, and how badly messages fare."""

    def __init__(self, loop: SimulatedLoop, chance: Random, latency: float) -> None:
        self.loop = loop
        self.chance = chance
        self.latency = latency
        self.loses = self.doubles = self.delays = 0.0
        self.counts: Counter[str] = Counter()
        self.cut: set[tuple[str, str]] = set()
        """Pairs of hosts that do not hear each other."""
        self.granted: Callable[[str, str, Answer], None] = lambda *_: None
        """Told of every answer with which a server may grant something."""
        self.members: dict[str, Member] = {}
        self._sleepers: list[Sleeper] = []
        self._rung: dict[str, dict[str, None]] = {}
        self._last: dict[tuple[str, str], float] = {}

    def attach(self, node: Node, listener: Listener) -> "SimulatedNotifier":
        self.members[listener.name] = Member(node, listener)
        return SimulatedNotifier(self, listener.name)

    def detach(self, node: Node) -> None:
        self.members = {name: one for name, one in self.members.items() if one.node is not node}

    def calm(self) -> None:
        self.loses = self.doubles = self.delays = 0.0
        self.cut.clear()

    # ── how a message fares ──────────────────────────────────────────────────────────────────

    def happens(self, likely: float, what: str) -> bool:
        found = likely > 0 and self.chance.random() < likely
        self.counts[what] += found
        return found

    def passes(self, one: Node | None, other: Node | None) -> bool:
        pair = host(one), host(other)
        if pair in self.cut or pair[::-1] in self.cut:
            self.counts["cut off"] += 1
            return False
        return not self.happens(self.loses, "lost")

    def seconds(self) -> float:
        late = self.chance.random() * 5.0 if self.happens(self.delays, "delayed") else 0.0
        return self.latency * self.chance.random() + late

    def send(self, server: str, kind: Any, said: bytes, told: "asyncio.Future[bytes]") -> None:
        """Bring a call or a question to a server, and its answer back."""
        sender = NODE.get()
        member = self.members.get(server)
        if member is None or member.node.dead:
            self.loop.later(REFUSED, refuse, told, f"server '{server}' cannot be reached")
            return
        if not self.passes(sender, member.node):
            return
        pair = (host(sender), server)
        at = max(self.loop.now + self.seconds(), self._last.get(pair, 0.0))
        self._last[pair] = at
        self.loop.later(at - self.loop.now, self._arrive, server, kind, said, sender, told)
        if self.happens(self.doubles, "doubled"):
            again = at + self.chance.random() * 8.0 - self.loop.now
            self.loop.later(again, self._arrive, server, kind, said, sender, None)

    def _arrive(
        self,
        server: str,
        kind: Any,
        said: bytes,
        sender: Node | None,
        told: "asyncio.Future[bytes] | None",
    ) -> None:
        member = self.members.get(server)
        if member is None or member.node.dead:
            if told is not None:
                refuse(told, f"server '{server}' is gone")
            return
        self.loop.on(member.node, self._heard(member, kind, said, sender, told))

    async def _heard(
        self,
        member: Member,
        kind: Any,
        said: bytes,
        sender: Node | None,
        told: "asyncio.Future[bytes] | None",
    ) -> None:
        try:
            if kind is Call:
                call = msgspec.json.decode(said, type=Call)
                answer: Any = await member.listener.answer(call, ANYBODY)
                self.granted(member.listener.name, call.worker, answer)
            else:
                question: Question = msgspec.json.decode(said, type=Question)
                answer = await member.listener.reply(question, ANYBODY)
        except Exception as fault:
            if told is not None:
                self.loop.later(self.seconds(), refuse, told, f"server could not answer: {fault!r}")
            return
        if told is not None and self.passes(member.node, sender):
            written = msgspec.json.encode(answer)
            self.loop.later(self.seconds(), answered, told, written)

    # ── wake-ups ─────────────────────────────────────────────────────────────────────────────

    def ring(self, server: str, pool: str) -> None:
        for sleeper in self._sleepers:
            if sleeper.hungry and sleeper.pool == pool and not sleeper.woken.done():
                sleeper.woken.set_result(server)
                return
        self._rung.setdefault(pool, {})[server] = None

    def nudge(self, server: str, worker: str) -> None:
        for sleeper in self._sleepers:
            if sleeper.worker == worker and not sleeper.woken.done():
                sleeper.woken.set_result(server)
                return

    def rung(self, pool: str) -> str | None:
        told = self._rung.get(pool)
        server = next(iter(told), None) if told else None
        if told and server is not None:
            del told[server]
        return server

    async def sleep(self, sleeper: Sleeper) -> str | None:
        self._sleepers = [one for one in self._sleepers if not one.node.dead]
        self._sleepers.append(sleeper)
        try:
            await asyncio.wait([sleeper.woken], timeout=POLL)
        finally:
            self._sleepers = [one for one in self._sleepers if one is not sleeper]
        return sleeper.woken.result() if sleeper.woken.done() else None


def host(node: Node | None) -> str:
    """The machine, whichever of its lives this is."""
    return "client" if node is None else node.name.partition(".")[0]


def refuse(told: "asyncio.Future[bytes]", why: str) -> None:
    if not told.done():
        told.set_exception(ServerAway(why))


def answered(told: "asyncio.Future[bytes]", answer: bytes) -> None:
    if not told.done():
        told.set_result(answer)


class SimulatedNotifier:
    """See the contract of `Notifier`."""

    def __init__(self, network: Network, server: str) -> None:
        self._network = network
        self._server = server

    def wake_pool(self, pool: str, parts: int) -> None:  # noqa: ARG002
        network = self._network
        if not network.happens(network.loses, "lost"):
            network.loop.later(network.seconds(), network.ring, self._server, pool)

    def wake_worker(self, worker: str) -> None:
        network = self._network
        if not network.happens(network.loses, "lost"):
            network.loop.later(network.seconds(), network.nudge, self._server, worker)


class SimulatedLink:
    """See the contract of `Link`."""

    def __init__(self, network: Network, node: Node) -> None:
        self._network = network
        self._node = node
        self._turn = 0

    async def call(self, server: str, call: Call) -> Answer:
        told = await self._said(server, call, PATIENCE)
        return msgspec.json.decode(told, type=Answer)

    async def ask(self, question: Question, server: str | None = None) -> Reply:
        server = server or self._some_server()
        if server is None:
            raise ServerAway("no server is there")
        told = await self._said(server, question, PATIENCE + getattr(question, "wait", 0.0))
        return msgspec.json.decode(told, type=Reply)

    async def wake(self, worker: str, pool: str, *, hungry: bool) -> str:
        network = self._network
        server = network.rung(pool) if hungry else None
        if server is None:
            woken: asyncio.Future[str] = network.loop.create_future()
            sleeper = Sleeper(self._node, worker, pool, hungry, woken)
            server = await network.sleep(sleeper)
        server = server or self._some_server()
        if server is None:
            raise ServerAway("no server is there")
        return server

    async def close(self) -> None:
        """There is no line that could be closed."""

    def _some_server(self) -> str | None:
        """In turn: none of them is forgotten for long (T4)."""
        servers = [name for name, one in self._network.members.items() if not one.node.dead]
        self._turn += 1
        return servers[self._turn % len(servers)] if servers else None

    async def _said(self, server: str, what: Any, seconds: float) -> bytes:
        told: asyncio.Future[bytes] = self._network.loop.create_future()
        self._network.send(server, type(what), msgspec.json.encode(what), told)
        try:
            async with asyncio.timeout(seconds):
                return await told
        except TimeoutError:
            raise ServerAway(f"server '{server}' did not answer within {seconds:g} s") from None
