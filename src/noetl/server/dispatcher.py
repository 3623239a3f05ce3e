"""
Where workers of other processes call: parts are granted here, reports taken, leases kept (WRK-1).

To the server it is the hands that run parts. It decides nothing about steps or tokens: it knows
who has which part, and hands what it is told to the server in the order in which it came.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from noetl.control.dispatch import Command
from noetl.control.execution import Execution, Part, Run
from noetl.errors import LogUnavailable, NoetlError, ServerAway, ServerRefused, VersionConflict
from noetl.masking import KNOWN
from noetl.messages import events as e
from noetl.messages.codec import encode, encode_events
from noetl.messages.requests import LeaseLost, PartClaimed, Report
from noetl.playbook.plan import Plan
from noetl.ports.desk import Taken
from noetl.ports.event_log import Printed, PrintedLine
from noetl.ports.link import (
    Answer,
    Call,
    Grant,
    Hold,
    Notifier,
    Question,
    Reply,
    Sent,
    Stop,
    Told,
    Verdict,
)
from noetl.server.active import ActiveExecution
from noetl.server.inspection import Unfit, inspected
from noetl.server.leases import Lease, Leases, PartKey, key_of
from noetl.server.server import Server
from noetl.server.waiting_parts import Offer, WaitingParts

LEASE = 15.0
"""Seconds that a worker may be silent (TASK-10 overrides it by step)."""

ANSWERED = 700_000
"""Bytes of grants in one answer, about: what is more comes with the next."""

Through = Callable[[Plan, Execution, Run, str], list[e.Event] | None]


class Seen(msgspec.Struct, kw_only=True):
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
    free: int = 0


class Waiting(NamedTuple):
    """A report that was taken, until its commit."""

    taken: Taken
    over: bool


class Dispatcher:
    """Listener for workers, hands for the server; see `ports.link` for what is said."""

    def __init__(
        self,
        server: Server,
        *,
        name: str,
        version: str,
        printed: Printed,
        through: Through,
        bring: Callable[[str], Awaitable[ActiveExecution | str]],
        ask: Callable[[Question], Awaitable[Any]],
        ttl: float = LEASE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.notifiers: list[Notifier] = []
        self.seen: dict[str, Seen] = {}
        self.parts = WaitingParts()
        self.leases = Leases(clock)
        self._server = server
        self._version = version
        self._printed = printed
        self._through = through
        self._bring = bring
        self._ask = ask
        self._ttl = ttl
        self._clock = clock
        self._spent: dict[PartKey, int] = {}
        """The last epoch of parts whose lease ended before the log heard of it."""
        self._stops: dict[str, list[Stop]] = {}
        self._tidy: dict[str, list[str]] = {}
        self._visited: dict[str, set[str]] = {}
        self._ringing: set[str] = set()
        self._places: Counter[str] = Counter()
        """Free places of workers whose calls are being answered: nobody need be woken for those."""

    # ── hands of the server ──────────────────────────────────────────────────────────────────

    def begin(self, command: Command, plan: Plan, folder: str | None) -> None:
        """Offer a part to the workers of its pool."""
        key = (command.execution_id, command.step_run_id, command.part)
        spent = self._spent.pop(key, None)
        if spent is not None and spent >= command.epoch:
            command = msgspec.structs.replace(command, epoch=spent + 1)
        lease = plan.steps[command.step].lease
        ttl = lease.ttl or self._ttl
        offer = Offer(command, plan.digest, folder, ttl, lease.heartbeat or 0.0)
        self.parts.add(plan.executor.pool, offer)
        self._ring_soon(plan.executor.pool)

    def run_through(self, plan: Plan, execution: Execution, run: Run) -> list[e.Event] | None:
        """What waits for nothing and touches nothing needs no worker of another process."""
        return self._through(plan, execution, run, self.name)

    def keeps(self, active: ActiveExecution, run: Run, part: Part) -> bool:
        """After a take-over open leases get a full term: their workers may be alive."""
        if part.worker is None:
            return False
        hold = Hold(active.execution.execution_id, run.step_run_id, part.part, part.epoch)
        known = self.leases.find(key_of(hold))
        if known is None or known.hold.epoch < part.epoch:
            ttl = active.plan.steps[run.step].lease.ttl or self._ttl
            self._grant_to(part.worker, hold, ttl)
        return True

    async def cancel(self, execution_id: str, step_run_id: str | None = None) -> None:
        """NEXT-8: parts that nobody has end now; workers are told of the others."""
        active = self._server.find(execution_id)
        for command in self.parts.take_out(execution_id, step_run_id):
            if active is not None and command.step_run_id in active.execution.runs:
                self._server.stop_part(active, command)
        for lease in self.leases.of_execution(execution_id, step_run_id):
            stop = Stop(execution_id, lease.hold.step_run_id)
            stops = self._stops.setdefault(lease.worker, [])
            if stop not in stops:
                stops.append(stop)
                self._nudge(lease.worker)

    async def forget(self, scratch: str) -> None:
        execution_id, _, run = scratch.partition("/")
        visited = self._visited
        for worker in visited.get(execution_id, ()) if run else visited.pop(execution_id, ()):
            if worker in self.seen:
                self._tidy.setdefault(worker, []).append(scratch)

    # ── calls of workers ─────────────────────────────────────────────────────────────────────

    async def answer(self, call: Call) -> Answer:
        """Everything is decided before the first await: calls take effect in order of arrival."""
        if call.version != self._version:
            return Answer(server=self.name, refusal=self._other_version(call))
        self._note(call)
        taken = [self._take(call.worker, sent) for sent in call.reports]
        lost = [] if call.holds is None else self._renew(call.worker, call.holds)
        for hold in call.returns:
            self._give_back(call.worker, hold)
        for line in call.lines:
            self._printed.keep(printed_line(line))
        self._places[call.pool] += call.free
        try:
            verdicts = [
                await self._verdict(call.worker, sent, state)
                for sent, state in zip(call.reports, taken, strict=True)
            ]
        finally:
            self._places[call.pool] -= call.free
        self._server.pump()  # what these reports led to may go back with the answer
        grants = self._grant(call)
        waiting = self.parts.count(call.pool) > 0
        if waiting:  # a ring wakes one worker: the next one, too
            self._ring_soon(call.pool)
        return Answer(
            server=self.name,
            verdicts=verdicts,
            lost=lost,
            stops=self._stops.pop(call.worker, []),
            tidy=self._tidy.pop(call.worker, []),
            grants=grants,
            more=waiting,
        )

    async def reply(self, question: Question) -> Reply:
        try:
            return Reply(value=msgspec.Raw(encode(await self._ask(question))))
        except NoetlError as wrong:
            return Reply(error={"code": code_of(wrong), "message": KNOWN.masked(str(wrong))})
        except Exception as fault:  # promise 7: one bad question does not stop the others
            said = KNOWN.masked(f"{type(fault).__name__}: {fault}")
            return Reply(error={"code": "internal", "message": said})

    def _other_version(self, call: Call) -> str:
        return (
            f"worker {call.worker} is version {call.version}, server {self.name} is version "
            f"{self._version}: install the same version on both"
        )

    def _note(self, call: Call) -> None:
        now = time.time()
        seen = self.seen.get(call.worker)
        if seen is None:
            self.seen[call.worker] = Seen(
                name=call.worker,
                pool=call.pool,
                slots=call.slots,
                version=call.version,
                host=call.host,
                pid=call.pid,
                since=now,
                at=now,
                heard=self._clock(),
                free=call.free,
            )
        else:
            seen.at, seen.free, seen.slots = now, call.free, call.slots
            seen.heard = self._clock()

    # ── reports ──────────────────────────────────────────────────────────────────────────────

    def _take(self, worker: str, sent: Sent) -> Verdict | Waiting | None:
        """Whether a report stands; None where the execution is not in memory."""
        hold = sent.hold
        active = self._server.find(hold.execution_id)
        if active is None:
            return None
        run = active.execution.runs.get(hold.step_run_id)
        part = run.parts.get(hold.part) if run is not None else None
        if run is None or part is None:
            return Verdict("refused", over=True, reason="the part has ended")
        if not self._may_report(active, part, worker, hold):
            return Verdict("refused", reason="another worker has the part, or its lease has ended")
        known = part.taken if hold.epoch == part.epoch else 0
        if sent.after > known:
            return Verdict("gap", taken=known)
        try:
            events = inspected(sent, active.execution, run, part)[known - sent.after :]
        except Unfit as wrong:
            self._end_lease(hold)
            return Verdict("refused", reason=str(wrong))
        if not events:
            return Verdict("known")
        report = Report(
            step_run_id=hold.step_run_id,
            part=hold.part,
            epoch=hold.epoch,
            worker=worker,
            events=events,
            after=known,
        )
        taken = self._server.receive(active, report)
        if not taken.events:
            return Verdict("refused", reason="the server could not take the report")
        over = not is_open(active, hold)
        if over:
            self._forget_part(key_of(hold))
        return Waiting(taken, over)

    def _may_report(self, active: ActiveExecution, part: Part, worker: str, hold: Hold) -> bool:
        """Its lease is the present one; or the owner before granted it, unheard by the log."""
        lease = self.leases.find(key_of(hold))
        if lease is not None:
            return lease.hold.epoch == hold.epoch and lease.worker == worker
        if part.epoch < hold.epoch < active.term and part.worker is None:
            self.parts.discard(key_of(hold))
            self._grant_to(worker, hold, active.plan.steps[self._step(active, hold)].lease.ttl)
            return True
        return False

    def _step(self, active: ActiveExecution, hold: Hold) -> str:
        return active.execution.runs[hold.step_run_id].step

    async def _verdict(self, worker: str, sent: Sent, state: Verdict | Waiting | None) -> Verdict:
        if state is None:
            found = await self._bring(sent.hold.execution_id)
            if isinstance(found, str):
                return ABSENT[found]
            state = self._take(worker, sent)
            if state is None:
                return ABSENT["later"]
        if isinstance(state, Verdict):
            return state
        try:
            await state.taken.committed
        except (LogUnavailable, VersionConflict):
            return Verdict("later", reason="the log could not be written")
        except NoetlError as wrong:
            return Verdict("later", reason=KNOWN.masked(str(wrong)))
        refused = refused_writes(state.taken.events)
        if refused:
            return Verdict("recorded", over=state.over, refused=msgspec.Raw(encode_events(refused)))
        return OVER if state.over else RECORDED

    # ── leases ───────────────────────────────────────────────────────────────────────────────

    def _grant(self, call: Call) -> list[Grant]:
        grants: list[Grant] = []
        room = ANSWERED
        while len(grants) < call.free and room > 0:
            offer = self.parts.take(call.pool)
            if offer is None:
                break
            command = offer.command
            if self._server.find(command.execution_id) is None:
                continue
            text = encode(command)
            room -= len(text)
            hold = Hold(command.execution_id, command.step_run_id, command.part, command.epoch)
            self._grant_to(call.worker, hold, offer.ttl)
            grants.append(
                Grant(
                    command=msgspec.Raw(text),
                    digest=offer.digest,
                    folder=offer.folder,
                    ttl=offer.ttl,
                    beat=offer.beat,
                )
            )
        return grants

    def _grant_to(self, worker: str, hold: Hold, ttl: float | None) -> None:
        self.leases.grant(hold, worker, ttl or self._ttl)
        self._visited.setdefault(hold.execution_id, set()).add(worker)

    def _renew(self, worker: str, holds: list[Hold]) -> list[Hold]:
        """Extend; a lease that the worker does not name is one whose grant it never got."""
        lost = self.leases.renew(worker, holds)
        for hold in lost:
            self._readopt(worker, hold)
        lost = self.leases.renew(worker, lost)
        named = {key_of(hold) for hold in holds}
        now = self._clock()
        for lease in self.leases.of_worker(worker):
            young = lease.until - now > 0.5 * lease.ttl  # its grant may be on the way still
            if key_of(lease.hold) not in named and not young:
                self._expire(lease)
        return lost

    def _readopt(self, worker: str, hold: Hold) -> None:
        """A worker that works quietly across a take-over keeps what nobody else was given."""
        active = self._server.find(hold.execution_id)
        run = active.execution.runs.get(hold.step_run_id) if active is not None else None
        part = run.parts.get(hold.part) if run is not None else None
        if active is not None and part is not None:
            self._may_report(active, part, worker, hold)

    def _give_back(self, worker: str, hold: Hold) -> None:
        lease = self.leases.find(key_of(hold))
        if lease is not None and lease.worker == worker and lease.hold.epoch == hold.epoch:
            self._expire(lease, returned=True)

    def expire(self) -> None:
        """End the leases whose time is up; their parts are offered again."""
        for lease in self.leases.expired():
            self._expire(lease)

    def _expire(self, lease: Lease, *, returned: bool = False) -> None:
        hold = lease.hold
        active = self._server.find(hold.execution_id)
        self.leases.end(key_of(hold))
        if active is None:
            return
        self._spent[key_of(hold)] = hold.epoch
        lost = LeaseLost(
            step_run_id=hold.step_run_id,
            part=hold.part,
            epoch=hold.epoch,
            returned=returned,
            worker=lease.worker,
        )
        self._server.lose(active, lost)
        if not is_open(active, hold):
            self._forget_part(key_of(hold))

    async def record_claims(self) -> None:
        """Before this server stops: the next one knows then who works on what."""
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
                with suppress(NoetlError):
                    await self._server.receive(active, claim).committed

    def _end_lease(self, hold: Hold) -> None:
        lease = self.leases.find(key_of(hold))
        if lease is not None:
            self._expire(lease)

    def _forget_part(self, key: PartKey) -> None:
        self.leases.end(key)
        self._spent.pop(key, None)

    def release(self, execution_id: str) -> None:
        """The execution has ended here, or belongs to another server: nothing is kept of it."""
        for lease in self.leases.of_execution(execution_id):
            self._forget_part(key_of(lease.hold))
        self.parts.take_out(execution_id)
        self._visited.pop(execution_id, None)
        for key in [key for key in self._spent if key[0] == execution_id]:
            del self._spent[key]

    # ── time and bells ───────────────────────────────────────────────────────────────────────

    async def watch(self) -> None:
        """Leases run out, and bells that nobody heard ring again, until this is cancelled."""
        while True:
            await asyncio.sleep(min(1.0, self._ttl / 8))
            self.expire()
            for pool in self.parts.pools():
                self._ring(pool)
            silent = self._clock() - 4 * self._ttl
            for name in [name for name, seen in self.seen.items() if seen.heard < silent]:
                del self.seen[name]
                self._stops.pop(name, None)
                self._tidy.pop(name, None)

    def _ring_soon(self, pool: str) -> None:
        """Two turns later: a worker that has just reported takes the part with its answer."""
        if pool not in self._ringing:
            self._ringing.add(pool)
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._ring, pool)

    def _ring(self, pool: str) -> None:
        self._ringing.discard(pool)
        parts = self.parts.count(pool) - self._places[pool]
        if parts > 0:
            for notifier in self.notifiers:
                notifier.ring(pool, parts)

    def _nudge(self, worker: str) -> None:
        for notifier in self.notifiers:
            notifier.nudge(worker)


def is_open(active: ActiveExecution, hold: Hold) -> bool:
    run = active.execution.runs.get(hold.step_run_id)
    return run is not None and hold.part in run.parts


def refused_writes(events: list[e.Event]) -> list[e.Event]:
    """LOOP-5: outcomes whose write to ctx was turned into a failure."""
    return [
        event
        for event in events
        if type(event) is e.TaskDone
        and event.error is not None
        and event.error.get("kind") == "ctx_conflict"
    ]


def printed_line(told: Told) -> PrintedLine:
    return PrintedLine(**msgspec.structs.asdict(told))


def code_of(wrong: NoetlError) -> str:
    if isinstance(wrong, ServerRefused):
        return wrong.code
    return CODES.get(type(wrong).__name__, "invalid")


CODES = {
    "ExecutionNotFound": "not_found",
    "PlaybookNotFound": "not_found",
    "UnreadableFile": "not_found",
    "LogUnavailable": "later",
    ServerAway.__name__: "later",
    "HomeInUse": "moved",
}
RECORDED = Verdict("recorded")
OVER = Verdict("recorded", over=True)
ABSENT = {
    "ended": Verdict("refused", over=True, reason="the execution has ended"),
    "moved": Verdict("moved", reason="another server owns the execution"),
    "later": Verdict("later", reason="the execution is being taken over"),
}
"""What a report hears whose execution this server does not have."""
