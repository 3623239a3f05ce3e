"""Which worker has which part, and until when? Leases live in memory; the log has their epochs."""

import time
from collections.abc import Callable, Iterable

import msgspec

from noetl.ports.link import Hold

PartKey = tuple[str, str, int]
"""Execution, step run, part."""


class PartLease(msgspec.Struct, kw_only=True):
    """The right of one worker to run one part in one epoch (WRK-1)."""

    hold: Hold
    worker: str
    ttl: float
    until: float
    """By the monotonic clock: a clock that is set moves no lease (T9)."""
    heard: bool = False
    """Whether the worker spoke of it to this server: only then can its silence mean its death."""
    stopping: bool = False
    """Whether the worker is to end it (NEXT-8)."""
    alone: bool = False
    """Whether the worker gets nothing else meanwhile: workers died while they ran this before."""


def key_of(hold: Hold) -> PartKey:
    return (hold.execution_id, hold.step_run_id, hold.part)


class Leases:
    """Every lease that this server has granted, or found in the log when it took over."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._by_part: dict[PartKey, PartLease] = {}
        self._by_worker: dict[str, dict[PartKey, PartLease]] = {}
        self._by_execution: dict[str, dict[PartKey, PartLease]] = {}

    def __len__(self) -> int:
        return len(self._by_part)

    def find(self, key: PartKey) -> PartLease | None:
        return self._by_part.get(key)

    def grant(self, hold: Hold, worker: str, ttl: float) -> PartLease:
        """A full term from now on."""
        lease = PartLease(hold=hold, worker=worker, ttl=ttl, until=self._clock() + ttl)
        key = key_of(hold)
        self.end(key)
        self._by_part[key] = lease
        self._by_worker.setdefault(worker, {})[key] = lease
        self._by_execution.setdefault(hold.execution_id, {})[key] = lease
        return lease

    def end(self, key: PartKey) -> PartLease | None:
        lease = self._by_part.pop(key, None)
        if lease is not None:
            for index, name in ((self._by_worker, lease.worker), (self._by_execution, key[0])):
                held = index[name]
                held.pop(key, None)
                if not held:
                    del index[name]
        return lease

    def renew(self, worker: str, holds: Iterable[Hold]) -> list[Hold]:
        """Extend the leases that are the worker's; the others are the answer."""
        now = self._clock()
        lost = []
        for hold in holds:
            lease = self._by_part.get(key_of(hold))
            if lease is None or lease.hold.epoch != hold.epoch or lease.worker != worker:
                lost.append(hold)
            else:
                lease.until = now + lease.ttl
                lease.heard = True
        return lost

    def prolong(self) -> None:
        """A full term for everybody: this server could hear nobody meanwhile."""
        now = self._clock()
        for lease in self._by_part.values():
            lease.until = now + lease.ttl

    def expired(self) -> list[PartLease]:
        now = self._clock()
        return [lease for lease in self._by_part.values() if lease.until <= now]

    def all(self) -> list[PartLease]:
        return list(self._by_part.values())

    def of_execution(self, execution_id: str, step_run_id: str | None = None) -> list[PartLease]:
        return [
            lease
            for lease in self._by_execution.get(execution_id, {}).values()
            if step_run_id in (None, lease.hold.step_run_id)
        ]

    def of_worker(self, worker: str) -> list[PartLease]:
        return list(self._by_worker.get(worker, {}).values())

    def load_of(self, worker: str) -> int:
        """How many parts a worker has."""
        return len(self._by_worker.get(worker, ()))
