"""
Where queued executions are while they wait: in the home, and in no server's memory (LIMIT-2).

One of them is let go first and parked then: what comes meanwhile is left as a note, which ends the
parking, and one that the home does not park, because it has got its place or a note, is brought
back. So there is no moment in which nobody would find it (decision 0073).
"""

from noetl.errors import NoetlError
from noetl.ports.limits import LimitClaims
from noetl.server.active import ActiveExecution
from noetl.server.ownership import Ownership
from noetl.server.server import Server

AT_ONCE = 500
"""Executions that are parked with one statement."""


class Parking:
    """Lets go of queued executions, many at a time."""

    def __init__(self, server: Server, ownership: Ownership, limits: LimitClaims) -> None:
        self._server = server
        self._ownership = ownership
        self._limits = limits
        self.adopt = ownership.look
        """Take over what nobody owns: those that got their place are among it."""
        self._idle: list[ActiveExecution] = []
        self._going = False

    def park(self, active: ActiveExecution) -> None:
        """Soon, with whatever else is to be parked then."""
        self._idle.append(active)
        if not self._going:
            self._going = True
            self._server.chore(self._park_all())

    async def _park_all(self) -> None:
        try:
            while self._idle:
                some, self._idle = self._idle[:AT_ONCE], self._idle[AT_ONCE:]
                for active in some:
                    if self._is_queued(active) and not is_idle(active):
                        self._server.chore(self._later(active))
                await self._park([one for one in some if self._is_queued(one) and is_idle(one)])
        finally:
            self._going = False

    def _is_queued(self, active: ActiveExecution) -> bool:
        return self._server.is_active(active) and active.execution.status == "queued"

    async def _later(self, active: ActiveExecution) -> None:
        await active.passes(lambda: self._is_queued(active) and not is_idle(active))
        if self._is_queued(active):
            self.park(active)

    async def _park(self, actives: list[ActiveExecution]) -> None:
        if not actives:
            return
        names = [active.execution_id for active in actives]
        self._ownership.parking.update(names)
        for active in actives:
            self._server.release(active.execution_id)
            active.leave()
        parked: set[str] = set()
        try:
            parked.update(await self._limits.park(names))
        except NoetlError as away:
            self._ownership.says(f"queued executions stay in memory: {away}")
        finally:
            self._ownership.parking.difference_update(names)
        for name in names:
            if name not in parked:
                await self._ownership.bring(name)


def is_idle(active: ActiveExecution) -> bool:
    """Whether the log has all of it, and nothing is being decided."""
    return active.in_log and not active.inputs and not active.held
