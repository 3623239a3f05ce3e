"""Who may report on a part, and for how long: leases, from their grant to their end (WRK-1)."""

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from noetl.control.execution import Part, Run
from noetl.errors import NoetlError
from noetl.messages.requests import LeaseLost, PartClaimed
from noetl.ports.link import Hold
from noetl.ports.session import PartLost
from noetl.server.active import ActiveExecution
from noetl.server.leases import Leases, PartKey, PartLease, key_of
from noetl.server.server import Server
from noetl.server.waiting_parts import WaitingParts

REMEMBERED = 10_000
"""Executions that have ended whose workers are still known."""


class LeaseKeeper:
    """Grants, renews and ends leases, and tells the server which ended."""

    def __init__(
        self, server: Server, parts: WaitingParts, ttl: float, clock: Callable[[], float]
    ) -> None:
        self.leases = Leases(clock)
        self._server = server
        self._parts = parts
        self._ttl = ttl
        self._clock = clock
        self.spent: dict[PartKey, int] = {}
        """The last epoch of parts whose lease ended before the log heard of it."""
        self.visited: dict[str, set[str]] = {}
        """Execution → the workers that had a part of it."""
        self._past: OrderedDict[str, set[str]] = OrderedDict()
        """The same for executions that ended here lately: their last lines may be on the way."""

    def grant_to(self, worker: str, hold: Hold, ttl: float) -> PartLease:
        self.visited.setdefault(hold.execution_id, set()).add(worker)
        return self.leases.grant(hold, worker, ttl)

    def was_at(self, worker: str, execution_id: str) -> bool:
        """Whether a worker has or had a part of an execution here."""
        return worker in self.visited.get(execution_id, ()) or worker in self._past.get(
            execution_id, ()
        )

    def keeps(self, active: ActiveExecution, run: Run, part: Part) -> bool:
        """After a take-over open leases get a full term: their workers may be alive."""
        if part.worker is None:
            key = (active.execution.execution_id, run.step_run_id, part.part)
            return self.leases.find(key) is not None  # granted, and unheard by the log as yet
        hold = Hold(active.execution.execution_id, run.step_run_id, part.part, part.epoch)
        known = self.leases.find(key_of(hold))
        if known is None or known.hold.epoch < part.epoch:
            ttl = active.plan.steps[run.step].lease.ttl or self._ttl
            self.grant_to(part.worker, hold, ttl)
        return True

    def may_speak(self, active: ActiveExecution, hold: Hold, worker: str, pool: str) -> bool:
        """
        Whether this part is the worker's to report on and ask for: its lease is the present one; or
        the owner before granted it, to a worker of the same pool, unheard by the log.
        """
        run = active.execution.runs.get(hold.step_run_id)
        part = run.parts.get(hold.part) if run is not None else None
        if run is None or part is None:
            return False
        lease = self.leases.find(key_of(hold))
        if lease is not None:
            mine = lease.hold.epoch == hold.epoch and lease.worker == worker
            lease.heard = lease.heard or mine
            return mine
        unheard = part.epoch < hold.epoch < active.term and part.worker is None
        if unheard and pool == active.plan.executor.pool:
            self._parts.discard(key_of(hold))
            ttl = active.plan.steps[run.step].lease.ttl or self._ttl
            self.grant_to(worker, hold, ttl).heard = True
            return True
        return False

    def renew(self, worker: str, pool: str, holds: list[Hold]) -> tuple[list[Hold], list[Hold]]:
        """Extend; what is lost for the worker, and what another server may know of."""
        moved: dict[Hold, None] = {}  # looked up below: one call may name very many
        for hold in self.leases.renew(worker, holds):
            active = self._server.find(hold.execution_id)
            if active is None:
                moved[hold] = None
            elif not active.inputs:
                # Who works quietly across a take-over keeps what nobody else was given.
                self.may_speak(active, hold, worker, pool)
        known = [hold for hold in holds if hold not in moved]
        lost = [
            hold
            for hold in self.leases.renew(worker, known)
            if (active := self._server.find(hold.execution_id)) is not None and not active.inputs
        ]
        named = {key_of(hold) for hold in holds}
        now = self._clock()
        for lease in self.leases.of_worker(worker):
            young = lease.until - now > 0.5 * lease.ttl  # its grant may be on the way still
            if lease.heard and key_of(lease.hold) not in named and not young:
                self.end(lease, counted=False)  # the grant never arrived: nobody died
        return lost, list(moved)

    def give_back(self, worker: str, hold: Hold) -> None:
        lease = self.leases.find(key_of(hold))
        if lease is not None and lease.worker == worker and lease.hold.epoch == hold.epoch:
            self.end(lease, returned=True)

    def expire(self) -> None:
        """End the leases whose time is up; their parts are offered again."""
        for lease in self.leases.expired():
            self.end(lease, counted=lease.heard)

    def end(self, lease: PartLease, *, returned: bool = False, counted: bool = False) -> None:
        hold = lease.hold
        active = self._server.find(hold.execution_id)
        self.leases.end(key_of(hold))
        if active is None:
            return
        self.spent[key_of(hold)] = hold.epoch
        lost = LeaseLost(
            step_run_id=hold.step_run_id,
            part=hold.part,
            epoch=hold.epoch,
            returned=returned,
            counted=counted,
            worker=lease.worker,
        )
        self._server.handout.lose(active, lost)
        if not is_open(active, hold):
            self.forget_part(key_of(hold))

    async def record_claims(self) -> None:
        """Before this server stops: the next one knows then who works on what."""
        commits = []
        for lease in self.leases.all():
            hold = lease.hold
            active = self._server.find(hold.execution_id)
            if active is not None:
                claim = PartClaimed(
                    step_run_id=hold.step_run_id,
                    part=hold.part,
                    epoch=hold.epoch,
                    worker=lease.worker,
                )
                commits.append(self._server.receive(active, claim).committed)
        for commit in commits:
            with suppress(NoetlError, PartLost):
                await commit

    def forget_part(self, key: PartKey) -> None:
        self.leases.end(key)
        self.spent.pop(key, None)

    def release(self, execution_id: str) -> None:
        """The execution has ended here, or belongs to another server: nothing is kept of it."""
        for lease in self.leases.of_execution(execution_id):
            self.forget_part(key_of(lease.hold))
        self._parts.take_out(execution_id)
        if gone := self.visited.pop(execution_id, None):
            self._past[execution_id] = gone
        while len(self._past) > REMEMBERED:
            self._past.popitem(last=False)
        for key in [key for key in self.spent if key[0] == execution_id]:
            del self.spent[key]


def is_open(active: ActiveExecution, hold: Hold) -> bool:
    run = active.execution.runs.get(hold.step_run_id)
    return run is not None and hold.part in run.parts
