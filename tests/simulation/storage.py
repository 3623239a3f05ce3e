"""
A database that all servers share: slow, away, full, or deaf after it has written.

What it holds is the home in memory; around it is what PostgreSQL adds: a commit takes time and may
land after its writer has died, an answer may be lost, and an owner lives while its lease does.
"""

import asyncio
import math
from collections import Counter, deque
from collections.abc import Sequence
from random import Random
from typing import Any

from tests.simulation.loop import Node, SimulatedLoop

from noetl.adapters.batching import check, still_refused
from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.memory.owners import MemoryOwners
from noetl.adapters.memory.storage import MemoryStorage
from noetl.errors import LogUnavailable, NoetlError
from noetl.ports.commit import Commit
from noetl.ports.event_log import Adoption, Decision, LogRow, Snapshot, clock
from noetl.ports.limits import LimitClaim
from noetl.ports.object_store import Spool, StoreAway, StoreRefused

PATIENCE = 20.0
"""Seconds for which a database that is away is waited for."""
RENEWALS = 3

WRITES = frozenset(
    {
        "claim", "put", "settle", "note", "remove", "leave", "discard", "release", "adopt",
        "register", "keep", "take", "grant", "park", "withdraw", "abandoned", "server_seen",
        "seen", "server_gone",
    }
)  # fmt: skip
"""What changes something: the answer to it can be lost after it was done."""


class Disk:
    """How a store behaves at the moment, as one process sees it."""

    def __init__(self, loop: SimulatedLoop, chance: Random, latency: float) -> None:
        self._loop = loop
        self.chance = chance
        self.latency = latency
        self.lossy = 0.0
        """How likely it is that the answer to a write is lost."""
        self.full = False
        self.counts: Counter[str] = Counter()
        self._back: asyncio.Event | None = None

    @property
    def away(self) -> bool:
        return self._back is not None

    def leave(self) -> None:
        self._back = self._back or asyncio.Event()

    def come_back(self) -> None:
        if self._back is not None:
            self._back.set()
            self._back = None

    def seconds(self) -> float:
        return self.latency * self.chance.random()

    def loses(self) -> bool:
        lost = self.lossy > 0 and self.chance.random() < self.lossy
        self.counts["answers lost"] += lost
        return lost

    async def reached(self, patience: float = PATIENCE) -> None:
        """Raises LogUnavailable."""
        if self.latency:
            await asyncio.sleep(self.seconds())
        until = self._loop.now + patience
        while self._back is not None:
            try:
                async with asyncio.timeout_at(until):
                    await self._back.wait()
            except TimeoutError:
                self.counts["away"] += 1
                raise LogUnavailable("the simulated database does not answer") from None


class Asked:
    """A neighbour of the log: every call takes its time, and may not be answered."""

    def __init__(self, real: Any, disk: Disk) -> None:
        self._real = real
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        real, disk = getattr(self._real, name), self._disk
        writes = name in WRITES

        async def asked(*given: Any, **named: Any) -> Any:
            await disk.reached()
            if writes and disk.full:
                disk.counts["full"] += 1
                raise LogUnavailable("no space left on the simulated disk")
            found = await real(*given, **named)
            if writes and disk.loses():
                raise LogUnavailable("the simulated database went away after it had written")
            return found

        self.__dict__[name] = asked
        return asked


class SimulatedInbox(Asked):
    """Waiting for a note is no call: only looking is."""

    async def waits(self, timeout: float) -> bool:
        return bool(await self._real.waits(timeout))


class SimulatedPrinted:
    """What tasks printed; not part of the truth."""

    def __init__(self, real: Any) -> None:
        self.keep, self.read, self.flush = real.keep, real.read, real.flush


class SimulatedLog:
    """EventLog; a task of the database writes one batch at a time, whoever lives meanwhile."""

    def __init__(
        self,
        real: MemoryEventLog,
        disk: Disk,
        node: Node,
        loop: SimulatedLoop,
        owners: "SimulatedOwners",
    ) -> None:
        self._owners = owners
        self._real = real
        self._disk = disk
        self._node = node
        self._loop = loop
        self._queue: deque[tuple[Decision | str, Commit | None]] = deque()
        self._writing = False
        self._refused: dict[str, type[NoetlError]] = {}

    def append(self, decision: Decision, *, alone: bool = False) -> Commit:
        del alone
        check(decision)
        commit = Commit()
        self._put(decision, commit)
        return commit

    def forget(self, execution_id: str) -> None:
        if self._writing or self._queue:
            self._put(execution_id, None)
        else:
            self._refused.pop(execution_id, None)
            self._real.forget(execution_id)

    async def read(
        self, execution_id: str, *, after: int = 0, limit: int = 1000
    ) -> Sequence[LogRow]:
        await self._disk.reached()
        return await self._real.read(execution_id, after=after, limit=limit)

    async def snapshot(self, execution_id: str) -> Snapshot | None:
        await self._disk.reached()
        return await self._real.snapshot(execution_id)

    def _put(self, what: Decision | str, commit: Commit | None) -> None:
        self._queue.append((what, commit))
        if not self._writing:
            self._writing = True
            self._loop.on(self._node, self._write())

    async def _write(self) -> None:
        """A batch goes out; it lands whether its writer is still there or not."""
        while self._queue:
            await asyncio.sleep(0)  # what one turn of the loop asks for goes together
            batch = list(self._queue)
            self._queue.clear()
            try:
                await self._owners.enter()  # the first write makes the process known
                await self._disk.reached()
            except LogUnavailable as away:
                self._settle(self._give_up(batch, away))
                continue
            landed: asyncio.Future[list[Any]] = self._loop.create_future()
            self._loop.later(self._disk.seconds(), self._land, batch, landed)
            self._settle(await landed)
        self._writing = False

    def _land(self, batch: list[Any], landed: "asyncio.Future[list[Any]]") -> None:
        """In the database, at once."""
        if self._node.dead and self._disk.chance.random() < 0.5:
            return  # it was still on its way out
        if self._disk.full:
            self._disk.counts["full"] += 1
            full = LogUnavailable("no space left on the simulated disk")
            answers = self._give_up(batch, full)
        else:
            answers = [(commit, self._one(what)) for what, commit in batch]
            if self._disk.loses():  # it is written, and nobody will know before he reads again
                deaf = LogUnavailable("the simulated database went away after it had written")
                answers = self._give_up(batch, deaf)
        if not landed.done():
            self._loop.later(self._disk.seconds(), _tell, landed, answers)

    def _one(self, what: Decision | str) -> BaseException | None:
        if isinstance(what, str):
            self._refused.pop(what, None)
            self._real.forget(what)
            return None
        if what.execution_id in self._refused:
            return still_refused(what, self._refused[what.execution_id])
        return self._real.append(what).exception()

    def _give_up(self, batch: list[Any], fault: LogUnavailable) -> list[Any]:
        answers = []
        for what, commit in batch:
            if isinstance(what, str):
                self._refused.pop(what, None)
                self._real.forget(what)
            else:
                self._refused[what.execution_id] = LogUnavailable
                answers.append((commit, fault))
        return answers

    def _settle(self, answers: list[Any]) -> None:
        for commit, fault in answers:
            if commit is not None:
                commit.settle(fault)


def _tell(landed: "asyncio.Future[list[Any]]", answers: list[Any]) -> None:
    if not landed.done():
        landed.set_result(answers)


class Living(set[str]):
    """Tokens of the processes whose lease has not run out, by the clock of the database."""

    def __init__(self, loop: SimulatedLoop) -> None:
        super().__init__()
        self._loop = loop
        self.until: dict[str, float] = {}

    def __contains__(self, token: object) -> bool:
        return self.until.get(str(token), -1.0) > self._loop.now


class SimulatedOwners(Asked):
    """Owners, each alive while its lease is; see `adapters.postgres.lease`."""

    def __init__(
        self, real: MemoryOwners, disk: Disk, node: Node, loop: SimulatedLoop, lease: float
    ) -> None:
        super().__init__(real, disk)
        self.me = real.me
        self.sure_until = math.inf
        self.lapses = 0
        self._loop = loop
        self._seconds = lease
        self._living: Living = real._tables.alive  # type: ignore[assignment]
        self._entered = False
        self._node = node

    async def claim(self, execution_id: str) -> bool:
        await self.enter()
        await self._disk.reached()
        taken = await self._real.claim(execution_id)
        if self._disk.loses():  # it is asked again
            await self._disk.reached()
            await self._real.claim(execution_id)
        return bool(taken)

    async def adopt(self, limit: int) -> Adoption:
        await self.enter()
        await self._disk.reached()
        found: Adoption = await self._real.adopt(limit)
        if self._disk.loses():
            raise LogUnavailable("the simulated database went away after it had written")
        return found

    async def term(self) -> int:
        await self._disk.reached()
        return int(await self._real.term())

    async def enter(self) -> None:
        if not self._entered:
            await self._renew()
            self._entered = True
            self._loop.on(self._node, self._keep())
        elif clock() >= self.sure_until:
            await self._renew()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._seconds / RENEWALS)
            try:
                await self._renew()
            except LogUnavailable:
                continue

    async def _renew(self) -> None:
        sent = clock()
        await self._disk.reached(self._seconds)
        alive = self.me in self._living or not self._entered
        self._living.until[self.me] = self._loop.now + self._seconds
        if self._disk.loses():
            raise LogUnavailable("the simulated database went away after it had written")
        if not alive or clock() >= self.sure_until:
            self.lapses += 1
        self.sure_until = sent + self._seconds


class SimulatedLimits(Asked):
    """LimitClaims; whoever asks is known before, or its claims would be those of a dead process."""

    def __init__(self, real: Any, disk: Disk, owners: SimulatedOwners) -> None:
        super().__init__(real, disk)
        self._owners = owners
        self._asked = Asked(real, disk)

    async def take(self, claims: Sequence[LimitClaim]) -> list[int]:
        await self._owners.enter()
        return list(await self._asked.take(claims))


class SimulatedStorage:
    """One process's view of the database."""

    def __init__(
        self, log: MemoryEventLog, disk: Disk, node: Node, loop: SimulatedLoop, lease: float
    ) -> None:
        real = MemoryStorage(log._tables, log._me)
        self.owners = SimulatedOwners(real.owners, disk, node, loop, lease)
        self.log = SimulatedLog(log, disk, node, loop, self.owners)
        self.inbox = SimulatedInbox(real.inbox, disk)
        self.printed = SimulatedPrinted(real.printed)
        for name in NEIGHBOURS:
            setattr(self, name, Asked(getattr(real, name), disk))
        self.limits = SimulatedLimits(real.limits, disk, self.owners)
        self.key = real.key
        self.folder = None

    async def close(self) -> None:
        """The process goes in good order."""


NEIGHBOURS = (
    "executions", "playbooks", "catalog", "keys", "tokens", "roster", "pools", "audit", "cache",
    "triggers", "removals", "credentials",
)  # fmt: skip


class SimulatedObjects(MemoryObjectStore):
    """Bodies, as one process reaches them."""

    def __init__(self, kept: dict[str, bytes], disk: Disk) -> None:
        self.kept = kept
        self._disk = disk

    async def put(self, key: str, body: Spool) -> None:
        await self._reach()
        if self._disk.full:
            raise StoreRefused("no space left on the simulated disk")
        await super().put(key, body)
        if self._disk.loses():
            raise StoreAway("the simulated store went away after it had written")

    async def get(self, key: str, start: int = 0) -> Any:
        await self._reach()
        async for piece in super().get(key, start):
            yield piece

    async def keys(self, prefix: str) -> list[str]:
        await self._reach()
        return await super().keys(prefix)

    async def _reach(self) -> None:
        if self._disk.latency:
            await asyncio.sleep(self._disk.seconds())
        if self._disk.away:
            raise StoreAway("the simulated store does not answer")
