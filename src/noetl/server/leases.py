"""Which worker has which part, and until when? Leases live in memory; the log has their epochs."""

import time
from collections.abc import Callable, Iterable

import msgspec

from noetl.ports.link import Hold

PartKey = tuple[str, str, int]
"""Execution, step run, part."""


class Lease(msgspec.Struct, kw_only=True):
    """The right of one worker to run one part in one epoch (WRK-1)."""

    hold: Hold
    worker: str
    ttl: float
    until: float
    """By the monotonic clock: a clock that is set moves no lease (T9)."""


def key_of(hold: Hold) -> PartKey:
    return (hold.execution_id, hold.step_run_id, hold.part)


class Leases:
    """Every lease that this server has granted, or found in the log when it took over."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._by_part: dict[PartKey, Lease] = {}
        self._by_worker: dict[str, dict[PartKey, Lease]] = {}

    def __len__(self) -> int:
        return len(self._by_part)

    def find(self, key: PartKey) -> Lease | None:
        return self._by_part.get(key)

    def grant(self, hold: Hold, worker: str, ttl: float) -> Lease:
        """A full term from now on."""
        lease = Lease(hold=hold, worker=worker, ttl=ttl, until=self._clock() + ttl)
        key = key_of(hold)
        self.end(key)
        self._by_part[key] = lease
        self._by_worker.setdefault(worker, {})[key] = lease
        return lease

    def end(self, key: PartKey) -> Lease | None:
        lease = self._by_part.pop(key, None)
        if lease is not None:
            held = self._by_worker[lease.worker]
            held.pop(key, None)
            if not held:
                del self._by_worker[lease.worker]
        return lease

    def renew(self, worker: str, holds: Iterable[Hold]) -> list[Hold]:
        """Extend what this worker has; the answer names what it only believes to have."""
        now = self._clock()
        lost = []
        for hold in holds:
            lease = self._by_part.get(key_of(hold))
            if lease is None or lease.hold.epoch != hold.epoch or lease.worker != worker:
                lost.append(hold)
            else:
                lease.until = now + lease.ttl
        return lost

    def expired(self) -> list[Lease]:
        now = self._clock()
        return [lease for lease in self._by_part.values() if lease.until <= now]

    def all(self) -> list[Lease]:
        return list(self._by_part.values())

    def of_execution(self, execution_id: str, step_run_id: str | None = None) -> list[Lease]:
        return [
            lease
            for lease in self._by_part.values()
            if lease.hold.execution_id == execution_id
            and step_run_id in (None, lease.hold.step_run_id)
        ]

    def of_worker(self, worker: str) -> list[Lease]:
        return list(self._by_worker.get(worker, {}).values())
