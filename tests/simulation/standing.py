"""
Which executions stand still, and have no reason to?

Each is asked for itself: that one waits for something is no excuse for another, unless the other
waits for it, as a parent does for its child, a claim for whoever has the place, and a part for a
worker with room.
"""

from collections.abc import Iterable, Iterator

from tests.simulation.clocks import EPOCH

from noetl.adapters.memory.tables import MemoryTables
from noetl.control.execution import Execution
from noetl.control.waits import next_due
from noetl.control.waits_held import pending

QUIET = 45.0
"""Seconds within which something happens to whatever has not ended: longer than every lease,
delay, wait and call."""


class Standing:
    """Looks now and then, and remembers until when each had a reason to stand still."""

    def __init__(self, tables: MemoryTables, now: float) -> None:
        self._tables = tables
        self._began = now
        self._reason: dict[str, float] = {}

    def found(
        self,
        states: Iterable[Execution],
        acted: dict[str, float],
        now: float,
        *,
        crowded: bool,
        held: frozenset[str] = frozenset(),
    ) -> list[str]:
        """
        Executions that nothing has happened to for long. `acted`: when something did last;
        `crowded`: no worker has room; `held`: those of which a worker has a part, for whom that
        is no reason.
        """
        rows = {name: row for name, row in self._tables.rows.items() if row.finished_at is None}
        excused = {row.parent_execution_id or "" for row in rows.values()} | set(self._queued())
        until: dict[str, float] = {}
        for state in states:
            until[state.execution_id] = max(_times(state), default=0.0) - EPOCH
            if crowded and state.execution_id not in held and has_part(state):
                excused.add(state.execution_id)
        self._reason |= dict.fromkeys(excused, now)
        sources = (acted, until, self._reason)
        return [
            name
            for name in sorted(rows)
            if now - max(self._began, *(one.get(name, 0.0) for one in sources)) > QUIET
        ]

    def _queued(self) -> Iterator[str]:
        """Those that wait for a place which another one has."""
        held: dict[str, set[str]] = {}
        claims = self._tables.claims.values()
        for row in claims:
            if row.granted_at is not None:
                held.setdefault(row.claim.group, set()).add(row.claim.execution_id)
        for row in claims:
            name = row.claim.execution_id
            if row.granted_at is None and held.get(row.claim.group, set()) - {name}:
                yield name


def has_part(execution: Execution) -> bool:
    """Whether something of it is for a worker to do."""
    return any(run.parts for run in execution.runs.values())


def _times(execution: Execution) -> Iterator[float]:
    """
    Until when its tasks wait (seconds): begun or paused by a clock that was wrong, a wait may last
    for long by the right one.
    """
    for wait in pending(execution):
        yield (next_due(wait) or 0) / 1000
    for run in execution.runs.values():
        for delay in run.suspended.values():
            yield ((delay.due or 0) + delay.moved) / 1000  # a worker adds it to its own clock
