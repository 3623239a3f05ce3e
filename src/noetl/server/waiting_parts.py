"""The parts that wait for a worker, by pool, in the order in which they were offered."""

from collections import OrderedDict
from typing import NamedTuple

from noetl.control.dispatch import Command
from noetl.server.leases import PartKey

SUSPECT = 2
"""Workers that died with a part before it is run alone: an ordinary death makes no suspects."""


class Offer(NamedTuple):
    """A part that any worker of its pool may take."""

    command: Command
    digest: str
    folder: str | None
    ttl: float
    beat: float
    since: float
    """By the monotonic clock."""

    @property
    def key(self) -> PartKey:
        return (self.command.execution_id, self.command.step_run_id, self.command.part)

    @property
    def suspect(self) -> bool:
        return self.command.losses >= SUSPECT


class WaitingParts:
    """Rebuilt from the log whenever a server takes an execution over (promise 5)."""

    def __init__(self) -> None:
        self._pools: dict[str, OrderedDict[PartKey, Offer]] = {}
        self._suspects: dict[str, OrderedDict[PartKey, Offer]] = {}
        self._where: dict[PartKey, OrderedDict[PartKey, Offer]] = {}
        self._of: dict[str, set[PartKey]] = {}
        """Execution → its parts here."""

    def add(self, pool: str, offer: Offer) -> None:
        key = offer.key
        self.discard(key)
        queue = (self._suspects if offer.suspect else self._pools).setdefault(pool, OrderedDict())
        queue[key] = offer
        self._where[key] = queue
        self._of.setdefault(key[0], set()).add(key)

    def take(self, pool: str) -> Offer | None:
        """The oldest of a pool."""
        oldest = self.oldest(pool)
        return None if oldest is None else self.discard(oldest.key)

    def oldest(self, pool: str) -> Offer | None:
        return next(iter(self._pools.get(pool, {}).values()), None)

    def suspect(self, pool: str) -> Offer | None:
        """The oldest that must run alone."""
        return next(iter(self._suspects.get(pool, {}).values()), None)

    def discard(self, key: PartKey) -> Offer | None:
        queue = self._where.pop(key, None)
        if queue is None:
            return None
        mine = self._of[key[0]]
        mine.discard(key)
        if not mine:
            del self._of[key[0]]
        return queue.pop(key)

    def take_out(self, execution_id: str, step_run_id: str | None = None) -> list[Command]:
        """Remove the parts of an execution, or of one of its runs."""
        keys = [key for key in self._of.get(execution_id, ()) if step_run_id in (None, key[1])]
        found = [self.discard(key) for key in sorted(keys)]
        return [offer.command for offer in found if offer is not None]

    def take_all(self, pool: str) -> list[Offer]:
        """Remove everything of a pool."""
        queues = (self._pools, self._suspects)
        offers = [offer for queue in queues if pool in queue for offer in queue[pool].values()]
        for offer in offers:
            self.discard(offer.key)
        return offers

    def count(self, pool: str) -> int:
        return len(self._pools.get(pool, ())) + len(self._suspects.get(pool, ()))

    def pools(self) -> dict[str, int]:
        """Those in which something waits."""
        names = {*self._pools, *self._suspects}
        return {pool: count for pool in sorted(names) if (count := self.count(pool))}
