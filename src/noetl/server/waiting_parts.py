"""The parts that wait for a worker, by pool, in the order in which they were offered."""

from collections import OrderedDict
from typing import NamedTuple

from noetl.control.dispatch import Command
from noetl.server.leases import PartKey


class Offer(NamedTuple):
    """A part that any worker of its pool may take."""

    command: Command
    digest: str
    folder: str | None
    ttl: float
    beat: float


class WaitingParts:
    """Rebuilt from the log whenever a server takes an execution over (promise 5)."""

    def __init__(self) -> None:
        self._pools: dict[str, OrderedDict[PartKey, Offer]] = {}
        self._where: dict[PartKey, str] = {}
        self._of: dict[str, set[PartKey]] = {}
        """Execution → its parts here."""

    def add(self, pool: str, offer: Offer) -> None:
        command = offer.command
        key = (command.execution_id, command.step_run_id, command.part)
        self.discard(key)
        self._pools.setdefault(pool, OrderedDict())[key] = offer
        self._where[key] = pool
        self._of.setdefault(command.execution_id, set()).add(key)

    def take(self, pool: str) -> Offer | None:
        """The oldest of a pool."""
        waiting = self._pools.get(pool)
        if not waiting:
            return None
        return self.discard(next(iter(waiting)))

    def discard(self, key: PartKey) -> Offer | None:
        pool = self._where.pop(key, None)
        if pool is None:
            return None
        waiting = self._pools[pool]
        offer = waiting.pop(key)
        if not waiting:
            del self._pools[pool]
        mine = self._of[key[0]]
        mine.discard(key)
        if not mine:
            del self._of[key[0]]
        return offer

    def take_out(self, execution_id: str, step_run_id: str | None = None) -> list[Command]:
        """Remove the parts of an execution, or of one of its runs."""
        keys = [key for key in self._of.get(execution_id, ()) if step_run_id in (None, key[1])]
        found = [self.discard(key) for key in sorted(keys)]
        return [offer.command for offer in found if offer is not None]

    def count(self, pool: str) -> int:
        return len(self._pools.get(pool, ()))

    def pools(self) -> dict[str, int]:
        return {pool: len(waiting) for pool, waiting in self._pools.items()}
