"""Reports that cannot be decided (promise 7)."""

from typing import NamedTuple

from noetl.ports.link import Hold
from noetl.server.leases import PartKey, key_of

TRIPS = 2
"""How often an execution may fall to a report at one place; then the report is refused."""
MOST_TRIPPED = 1_000


class Tripped(NamedTuple):
    """Where a part stood when a report on it could not be decided."""

    epoch: int
    taken: int
    times: int


class Trips:
    """Parts whose reports made their executions fall."""

    def __init__(self) -> None:
        self._tripped: dict[PartKey, Tripped] = {}

    def note(self, hold: Hold, taken: int) -> None:
        before = self._tripped.pop(key_of(hold), None)
        again = before is not None and before[:2] == (hold.epoch, taken)
        times = before.times + 1 if again and before is not None else 1
        self._tripped[key_of(hold)] = Tripped(hold.epoch, taken, times)
        while len(self._tripped) > MOST_TRIPPED:
            del self._tripped[next(iter(self._tripped))]

    def enough(self, hold: Hold, taken: int) -> bool:
        """Whether another report on the part, where it stands, would do no better; told once."""
        found = self._tripped.get(key_of(hold))
        if found is None or found[:2] != (hold.epoch, taken) or found.times < TRIPS:
            return False
        del self._tripped[key_of(hold)]
        return True
