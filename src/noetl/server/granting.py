"""
Who gets the next part? Work goes to where it can run now.

Parts are spread evenly over the workers that have room; what waits longer than HURRY goes to
whoever asks. A part with which workers have died before runs alone: it takes nobody with it.
"""

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from noetl.messages.codec import encode
from noetl.ports.link import POLL, Call, Grant, Hold, Notifier
from noetl.server.leases import Leases, PartLease
from noetl.server.waiting_parts import Offer, WaitingParts

ANSWERED = 700_000
"""Bytes of grants in one answer, about: what is more comes with the next."""
HURRY = 0.25
"""Seconds that a part waits for the worker whose turn it is."""
FRESH = 2 * POLL
"""Seconds after its last call for which a worker counts as one that may take work."""

MOST_KNOWN = 10_000
"""Workers that are known at once. Whoever has a token gives itself names as it likes."""

GrantTo = Callable[[str, Hold, float], PartLease]


class KnownWorker(msgspec.Struct, kw_only=True):
    """A worker that called, as of its last call."""

    name: str
    pool: str
    slots: int
    version: str
    host: str
    pid: int
    since: float
    at: float
    heard: float
    """By the monotonic clock: a clock that is set makes nobody silent (T9)."""
    room: int = 0


class Granting:
    """The workers that this server knows, what waits for them, and who is woken."""

    def __init__(
        self,
        parts: WaitingParts,
        leases: Leases,
        sure: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self.notifiers: list[Notifier] = []
        self.seen: dict[str, KnownWorker] = {}
        self._parts = parts
        self._leases = leases
        self.sure = sure
        self._clock = clock
        self._cleared: dict[str, str] = {}
        """Pool → the worker that takes nothing until it is idle, to run a suspect alone."""
        self._waking: set[str] = set()
        self._hurrying: set[str] = set()
        """Pools in which a part waits for the worker whose turn it is."""

    def note(self, call: Call) -> None:
        now, heard = time.time(), self._clock()
        seen = self.seen.pop(call.worker, None)
        if seen is None:
            seen = KnownWorker(
                name=call.worker,
                pool=call.pool,
                slots=call.slots,
                version=call.version,
                host=call.host,
                pid=call.pid,
                since=now,
                at=now,
                heard=heard,
            )
        seen.at, seen.heard, seen.slots, seen.room = now, heard, call.slots, call.room
        self.seen[call.worker] = seen
        while len(self.seen) > MOST_KNOWN:  # in the order of their calls: the longest silent goes
            del self.seen[next(iter(self.seen))]

    # ── granting ─────────────────────────────────────────────────────────────────────────────

    def grants(self, call: Call, find: Callable[[str], Any], grant_to: GrantTo) -> list[Grant]:
        """What a worker gets with its answer."""
        if call.free < 1 or not self.sure():  # promise 4: a stale owner grants nothing
            return []
        alone = self._alone(call)
        if alone is not None:
            return [self._granted(call.worker, offer, grant_to, alone=True) for offer in alone]
        granted: list[Grant] = []
        most, size = self._share(call), 0
        while len(granted) < most and size < ANSWERED:
            offer = self._parts.take(call.pool)
            if offer is None:
                break
            if find(offer.command.execution_id) is not None:
                granted.append(self._granted(call.worker, offer, grant_to))
                size += len(granted[-1].command)
        return granted

    def _granted(
        self, worker: str, offer: Offer, grant_to: GrantTo, *, alone: bool = False
    ) -> Grant:
        command = offer.command
        hold = Hold(command.execution_id, command.step_run_id, command.part, command.epoch)
        lease = grant_to(worker, hold, offer.ttl)
        lease.alone, lease.heard = alone, True
        return Grant(
            command=msgspec.Raw(encode(command)),
            digest=offer.digest,
            folder=offer.folder,
            ttl=offer.ttl,
            beat=offer.beat,
        )

    def _alone(self, call: Call) -> list[Offer] | None:
        """A suspect for this worker, or nothing while it runs or waits for one; None: no matter."""
        held = self._leases.of_worker(call.worker)
        if any(lease.alone for lease in held):
            return []
        suspect = self._parts.suspect(call.pool)
        if suspect is None:
            return None
        if held and call.room < call.slots:  # parts that wait for a child keep nobody busy
            chosen = self._cleared.get(call.pool)
            if chosen in self.seen and chosen != call.worker:
                return None
            self._cleared[call.pool] = call.worker
            return []
        self._cleared.pop(call.pool, None)
        self._parts.discard(suspect.key)
        return [suspect]

    def _share(self, call: Call) -> int:
        """As many as bring this worker level with the others that have room."""
        oldest, now = self._parts.oldest(call.pool), self._clock()
        peers = [call.worker, *self._others(call)]
        if oldest is None or len(peers) < 2 or now - oldest.since > HURRY:
            return call.free
        loads = {name: self._leases.load_of(name) for name in peers}
        level = math.ceil((sum(loads.values()) + self._parts.count(call.pool)) / len(peers))
        for name, load in loads.items():
            if name != call.worker and load < level:
                self.wake_worker(name)
        return max(0, min(call.free, level - loads[call.worker]))

    def _others(self, call: Call) -> list[str]:
        """The other workers of its pool that have room."""
        now = self._clock()
        return [
            seen.name
            for seen in self.seen.values()
            if seen.pool == call.pool
            and seen.name != call.worker
            and seen.room > 0
            and now - seen.heard < FRESH
        ]

    # ── waking ───────────────────────────────────────────────────────────────────────────────

    def wake_soon(self, pool: str, places: Mapping[str, int]) -> None:
        """Two turns later: a worker that has just reported takes the part with its answer."""
        if pool not in self._waking:
            self._waking.add(pool)
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._wake, pool, places)

    def _wake(self, pool: str, places: Mapping[str, int]) -> None:
        self._waking.discard(pool)
        waiting = self._parts.count(pool) - places.get(pool, 0)
        if waiting > 0 and self.sure():  # whoever may grant nothing keeps nobody from others
            for notifier in self.notifiers:
                notifier.wake_pool(pool, waiting)

    def pass_on(self, call: Call, places: Mapping[str, int], *, served: bool) -> None:
        """
        Something still waits after an answer, and a wake-up reaches one worker: the next one, too.

        Whoever had room and got nothing would get nothing again. If it were woken, it would call
        at once, get nothing and be woken, as often as the line allows.
        """
        if served or call.free < 1:
            self.wake_soon(call.pool, places)
        elif self._parts.oldest(call.pool) is None:
            return  # suspects: the worker that is to run the next one takes it when it is idle
        elif self._reserved(call.pool, call.worker):
            for name in self._others(call):
                if not self._reserved(call.pool, name):
                    self.wake_worker(name)
        elif call.pool not in self._hurrying:  # it was the turn of others: do they come?
            self._hurrying.add(call.pool)
            asyncio.get_running_loop().call_later(HURRY, self._hurry, call.pool, places)

    def _hurry(self, pool: str, places: Mapping[str, int]) -> None:
        self._hurrying.discard(pool)
        self._wake(pool, places)

    def _reserved(self, pool: str, worker: str) -> bool:
        """Whether it takes nothing more: it runs a suspect, or is to run the next one alone."""
        if self._parts.suspect(pool) is not None and self._cleared.get(pool) == worker:
            return True
        return any(lease.alone for lease in self._leases.of_worker(worker))

    def wake_worker(self, worker: str) -> None:
        for notifier in self.notifiers:
            notifier.wake_worker(worker)

    def watch(self, silent: float) -> list[str]:
        """Wake again for what waits or is to be stopped; forget who was silent so long."""
        for pool in self._parts.pools():
            self._wake(pool, {})
        for lease in self._leases.all():
            if lease.stopping:
                self.wake_worker(lease.worker)
        now = self._clock()
        gone = [name for name, seen in self.seen.items() if now - seen.heard > silent]
        for name in gone:
            del self.seen[name]
        return gone
