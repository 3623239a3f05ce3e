"""
Where workers of other processes call: parts are granted here, reports taken, leases kept (WRK-1).

To the server it is the runner of parts. It decides nothing about steps or tokens: it knows who has
which part, and hands what it is told to the server in the order in which it came.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from noetl.control.dispatch import Command, open_parts
from noetl.control.execution import Execution, Part, Run
from noetl.control.folding import locate
from noetl.errors import NoetlError, ServerAway, ServerRefused
from noetl.masking import KNOWN
from noetl.messages import events as e
from noetl.messages.codec import decode_events, encode, encode_events
from noetl.messages.fitting import EventTooLarge
from noetl.messages.outcome import make_error
from noetl.messages.requests import Report
from noetl.playbook.plan import Plan
from noetl.ports.event_log import Printed, PrintedLine
from noetl.ports.link import (
    ANYBODY,
    SPEAKS,
    Answer,
    Call,
    Caller,
    Hold,
    LogKeysWanted,
    OwnerWanted,
    Question,
    Reply,
    Sent,
    Stop,
    Verdict,
)
from noetl.ports.result_store import EXECUTION_ID
from noetl.ports.session import PartLost, Taken, refused_writes
from noetl.server.active import ActiveExecution
from noetl.server.granting import Granting
from noetl.server.inspection import Unfit, inspected
from noetl.server.lease_keeper import LeaseKeeper, is_open
from noetl.server.leases import PartKey, key_of
from noetl.server.pools import PoolKeeper
from noetl.server.server import Server
from noetl.server.timers import now
from noetl.server.trips import Trips
from noetl.server.waiting_parts import Offer, WaitingParts

LEASE = 15.0
"""Seconds that a worker may be silent (TASK-10 overrides it by step)."""

Through = Callable[[Plan, Execution, Run, str], list[e.Event] | None]


class InCommit(NamedTuple):
    """A report that was taken, until its commit."""

    active: ActiveExecution
    taken: Taken
    then: Verdict | None = None
    """Of one that came again: what is said of it once it is in the log."""


class Dispatcher:
    """Listener for workers, runner for the server; see `ports.link` for what is said."""

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
        sure: Callable[[], bool] = lambda: True,
        ttl: float = LEASE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.parts = WaitingParts()
        self.keeper = LeaseKeeper(server, self.parts, ttl, clock)
        self.leases = self.keeper.leases
        self.pools: PoolKeeper | None = None
        self.granting = Granting(self.parts, self.leases, sure, clock)
        self.notifiers = self.granting.notifiers
        self.reachable: Callable[[], bool] = lambda: True
        """Whether workers can reach this server; while they cannot, their silence says nothing."""
        self.refuses: Callable[[str], None] = lambda _: None
        """Told, in a few words, what was not a worker's to say."""
        self._server = server
        self._version = version
        self._printed = printed
        self._through = through
        self._bring = bring
        self._ask = ask
        self._ttl = ttl
        self._clock = clock
        self._tidy: dict[str, list[str]] = {}
        self._trips = Trips()
        self._places: Counter[str] = Counter()
        """Free places of workers whose calls are being answered: nobody need be woken for those."""

    # ── runner of the server ─────────────────────────────────────────────────────────────────

    def begin(self, command: Command, plan: Plan, folder: str | None) -> None:
        """Offer a part to the workers of its pool."""
        key = (command.execution_id, command.step_run_id, command.part)
        if self.leases.find(key) is not None:  # its worker came back after a take-over
            return
        spent = self.keeper.spent.pop(key, None)
        if spent is not None and spent >= command.epoch:
            command = msgspec.structs.replace(command, epoch=spent + 1)
        lease = plan.steps[command.step].lease
        ttl = lease.ttl or self._ttl
        offer = Offer(command, plan.digest, folder, ttl, lease.heartbeat or 0.0, self._clock())
        if self.pools is None or self.pools.admits(plan.executor.pool, offer):
            self._offer(plan.executor.pool, offer)

    def _offer(self, pool: str, offer: Offer) -> None:
        if self.leases.find(offer.key) is None:  # else its worker spoke up meanwhile
            self.parts.add(pool, offer)
            self.granting.wake_soon(pool, self._places)

    def watch_pools(self, pools: PoolKeeper) -> None:
        """Let parts of pools with a limit wait for their place."""
        self.pools, pools.offers, pools.begun = pools, self._offer, self._begun

    def _begun(self, pool: str) -> tuple[list[Offer], list[PartKey]]:
        running = []
        for lease in self.leases.all():
            active = self._server.find(lease.hold.execution_id)
            if active is not None and active.plan.executor.pool == pool:
                running.append(key_of(lease.hold))
        return self.parts.take_all(pool), running

    def keeps(self, active: ActiveExecution, run: Run, part: Part) -> bool:
        """Whether a worker has the part, or may have it."""
        kept = self.keeper.keeps(active, run, part)
        if kept and self.pools is not None:
            key = (active.execution.execution_id, run.step_run_id, part.part)
            self.pools.keep(active.plan.executor.pool, key)
        return kept

    def run_through(self, plan: Plan, execution: Execution, run: Run) -> list[e.Event] | None:
        """What waits for nothing and touches nothing needs no worker of another process."""
        return self._through(plan, execution, run, self.name)

    async def cancel(self, execution_id: str, step_run_id: str | None = None) -> None:
        """NEXT-8: parts that nobody has end now; workers are told of the others."""
        active = self._server.find(execution_id)
        unplaced = [] if self.pools is None else self.pools.take_out(execution_id, step_run_id)
        for command in self.parts.take_out(execution_id, step_run_id) + unplaced:
            if active is not None and command.step_run_id in active.execution.runs:
                self._server.handout.fail_part(active, command, command.part, command.epoch)
        for lease in self.leases.of_execution(execution_id, step_run_id):
            lease.stopping = True
            self.granting.wake_worker(lease.worker)
        if active is not None and step_run_id is None and not active.inputs:
            self._server.handout.end_stopped(active)  # what pauses has no worker, and no place

    async def forget(self, scratch: str) -> None:
        execution_id = scratch.partition("/")[0]
        for worker in self.keeper.visited.get(execution_id, ()):
            if worker in self.granting.seen:
                self._tidy.setdefault(worker, []).append(scratch)

    # ── calls of workers ─────────────────────────────────────────────────────────────────────

    async def answer(self, call: Call, by: Caller = ANYBODY) -> Answer:
        """Everything is decided before the first await: calls take effect in order of arrival."""
        refusal = self._misheard(call) or by.strange(call.worker, call.pool)
        if refusal:
            self.refuses("stranger")
            return Answer(server=self.name, speaks=SPEAKS, refusal=refusal)
        self.granting.note(call)
        taken = [self._take(call, sent) for sent in call.reports]
        lost, moved = (
            ([], [])
            if call.holds is None
            else self.keeper.renew(call.worker, call.pool, call.holds)
        )
        for hold in call.returns:
            self.keeper.give_back(call.worker, hold)
        unheard = self._keep_lines(call.worker, call.lines)
        self._places[call.pool] += call.free
        try:
            verdicts = [
                await self._verdict(call, sent, state)
                for sent, state in zip(call.reports, taken, strict=True)
            ]
        finally:
            self._places[call.pool] -= call.free
        if self._keep_lines(call.worker, unheard):
            self.refuses("lines of others")
        self._server.handout.pump()  # what these reports led to may go back with the answer
        grants = self.granting.grants(call, self._server.find, self.keeper.grant_to)
        waiting = self.parts.count(call.pool) > 0 and self.granting.sure()
        if waiting:
            self.granting.pass_on(call, self._places, served=bool(grants))
        return Answer(
            server=self.name,
            speaks=SPEAKS,
            verdicts=verdicts,
            lost=lost,
            moved=moved,
            stops=[
                Stop(lease.hold.execution_id, lease.hold.step_run_id)
                for lease in self.leases.of_worker(call.worker)
                if lease.stopping
            ],
            tidy=self._tidy.pop(call.worker, []),
            grants=grants,
            more=waiting,
            clock=now(),
        )

    async def reply(self, question: Question, by: Caller = ANYBODY) -> Reply:
        try:
            strange = by.strange(question.worker, question.pool)
            if strange:
                self.refuses("stranger")
                raise ServerRefused(strange, code="refused")
            if not isinstance(question, OwnerWanted):
                await self._held(question)
            if isinstance(question, LogKeysWanted) and by.tag is None:
                question = msgspec.structs.replace(question, public="")
            return Reply(value=msgspec.Raw(encode(await self._ask(question))))
        except NoetlError as wrong:
            return Reply(error={"code": code_of(wrong), "message": KNOWN.masked(str(wrong))})
        except Exception as fault:  # promise 7: one bad question does not stop the others
            said = KNOWN.masked(f"{type(fault).__name__}: {fault}")
            return Reply(error={"code": "internal", "message": said})

    def _misheard(self, call: Call) -> str:
        if call.speaks == SPEAKS:
            return ""
        return (
            f"worker {call.worker} (version {call.version}) speaks protocol {call.speaks}, server "
            f"{self.name} (version {self._version}) speaks {SPEAKS}: stop the workers, install one "
            "version everywhere, and start them again; their work continues"
        )

    async def _held(self, question: Question) -> None:
        """WRK-1: whoever asks holds the lease on the part that it asks for; ServerRefused."""
        hold = question.hold
        if hold is None or EXECUTION_ID.fullmatch(hold.execution_id) is None:
            raise ServerRefused("the question names no lease", code="refused")
        active = await self._bring(hold.execution_id)
        if isinstance(active, str):
            code = "refused" if active == "ended" else active
            raise ServerRefused(ABSENT[active].reason, code=code)
        await _readable(active)
        if not self.keeper.may_speak(active, hold, question.worker, question.pool):
            raise ServerRefused("the worker does not hold the lease that it names", code="refused")

    async def check_keeper(self, execution_id: str, by: Caller) -> None:
        """RES-1: whoever stores a body holds a lease on a part of its execution; ServerRefused."""
        active = await self._bring(execution_id)
        if isinstance(active, str):
            raise ServerRefused(ABSENT[active].reason, code=active, status=STATUSES[active])
        await _readable(active)
        pool = active.plan.executor.pool
        leases = self.leases.of_execution(execution_id)
        if any(not by.strange(lease.worker, pool) for lease in leases):
            return
        # After a take-over a lease may be unheard of until its worker renews it here.
        unheard = len(leases) < sum(1 for _ in open_parts(active.execution))
        code = "later" if unheard and by.pool in (None, pool) else "forbidden"
        raise ServerRefused(
            "no part of the execution is held with this token", code=code, status=STATUSES[code]
        )

    def _keep_lines(self, worker: str, lines: list[PrintedLine]) -> list[PrintedLine]:
        """Keep what was printed where this worker works or worked; the others are the answer."""
        others = []
        for line in lines:
            if self.keeper.was_at(worker, line.execution_id):
                self._printed.keep(line)
            else:
                others.append(line)
        return others

    # ── reports ──────────────────────────────────────────────────────────────────────────────

    def _take(self, call: Call, sent: Sent) -> Verdict | InCommit | None:
        """Whether a report stands; None where the state of the execution is not in memory."""
        hold = sent.hold
        active = self._server.find(hold.execution_id)
        if active is None or active.inputs:
            return None
        run = active.execution.runs.get(hold.step_run_id)
        part = run.parts.get(hold.part) if run is not None else None
        if run is None or part is None:
            return once_kept(active, Verdict("refused", over=True, reason="the part has ended"))
        if not self.keeper.may_speak(active, hold, call.worker, call.pool):
            return Verdict("refused", reason="another worker has the part, or its lease has ended")
        known = part.taken if hold.epoch == part.epoch else 0
        if sent.after > known:
            return Verdict("gap", taken=known)
        if self._trips.enough(hold, known):  # it is taken from its worker, as below
            self.refuses("report: it cannot be decided")
            if (lease := self.leases.find(key_of(hold))) is not None:
                self.keeper.end(lease, counted=True)
            return Verdict("refused", reason="the server cannot decide what follows from it")
        try:
            old = known - sent.after
            events = inspected(sent, active.execution, run, part, active.plan, known=old)
        except EventTooLarge as wrong:
            return self._refuse(active, run, hold, call.worker, wrong)
        except Exception as wrong:  # no worker of ours says so: another one runs the part
            if not isinstance(wrong, Unfit):  # promise 7: this report alone, not the whole call
                self.refuses(f"report: {type(wrong).__name__}")
            lease = self.leases.find(key_of(hold))
            if lease is not None:
                self.keeper.end(lease, counted=True)
            return Verdict("refused", reason=KNOWN.masked(str(wrong)))
        if not events:
            again = refused_again(decode_events(bytes(sent.events)), active, run)
            return once_kept(active, Verdict("known", refused=msgspec.Raw(encode_events(again))))
        report = Report(
            step_run_id=hold.step_run_id,
            part=hold.part,
            epoch=hold.epoch,
            worker=call.worker,
            events=in_our_time(events, call.clock),
            after=known,
        )
        taken = self._server.receive(active, report)
        if taken.events == []:
            if not self._server.is_active(active):
                self._trips.note(hold, known)
                return Verdict("later", reason="the execution is loaded again")
            return Verdict("refused", reason="the server could not take the report")
        if taken.events is not None and not is_open(active, hold):
            self.keeper.forget_part(key_of(hold))
        return InCommit(active, taken)

    def _refuse(
        self, active: ActiveExecution, run: Run, hold: Hold, worker: str, wrong: EventTooLarge
    ) -> Verdict:
        """
        The next worker's report would be no smaller: the run fails with the reason, once, instead
        of running again until its leases are used up.
        """
        said = f"the report of worker {worker} cannot be taken: {wrong}"
        error = make_error("result", KNOWN.masked(said))
        self._server.handout.fail_part(active, run, hold.part, hold.epoch, error)
        self.keeper.forget_part(key_of(hold))
        return Verdict("refused", over=True, reason=said)

    async def _verdict(self, call: Call, sent: Sent, state: Verdict | InCommit | None) -> Verdict:
        if state is None and EXECUTION_ID.fullmatch(sent.hold.execution_id) is None:
            return ABSENT["ended"]
        if state is None:
            found = await self._bring(sent.hold.execution_id)
            if isinstance(found, str):
                return ABSENT[found]
            await _readable(found)
            state = self._take(call, sent)
            if state is None:
                return ABSENT["later"]
        if isinstance(state, Verdict):
            return state
        commit = state.taken.committed
        try:
            await commit
        except PartLost as late:
            return Verdict("refused", reason=str(late))
        except NoetlError as wrong:
            return Verdict("later", reason=KNOWN.masked(f"not recorded: {wrong}"))
        if state.then is not None:
            return state.then
        over = not is_open(state.active, sent.hold)
        if over:
            self.keeper.forget_part(key_of(sent.hold))
        refused = commit.refused or refused_writes(state.taken.events or [])
        if refused:
            return Verdict("recorded", over=over, refused=msgspec.Raw(encode_events(refused)))
        return OVER if over else RECORDED

    async def watch(self) -> None:
        """Leases run out, and wake-ups that nobody heard come again, until this is cancelled."""
        tick = min(1.0, self._ttl / 8)
        before = self._clock()
        while True:
            await asyncio.sleep(tick)
            now = self._clock()
            if now - before > tick + self._ttl / 4 or not self.reachable():
                self.leases.prolong()  # it was this server that could not hear
            before = now
            self.keeper.expire()
            for worker in self.granting.watch(4 * self._ttl):
                self._tidy.pop(worker, None)


def once_kept(active: ActiveExecution, verdict: Verdict) -> Verdict | InCommit:
    """What follows from decisions that may still be refused is said when they are in the log."""
    if active.latest.done():
        return verdict
    return InCommit(active, Taken([], active.latest), verdict)


async def _readable(active: ActiveExecution) -> None:
    """Returns when its state can be looked at: bodies that it waited for are there."""
    while active.inputs:
        with suppress(NoetlError, PartLost):
            await active.inputs[-1].commit


def refused_again(events: list[e.Event], active: ActiveExecution, run: Run) -> list[e.Event]:
    """LOOP-5: writes that did not stand, for a worker that missed the first answer."""
    refused: list[e.Event] = []
    for event in events:
        if not isinstance(event, e.TaskDone) or not event.set_ctx:
            continue
        with suppress(KeyError, AssertionError):  # that iteration has ended
            frame = locate(run, event.task_run_id, active.plan.steps[run.step]).frame
            if frame.error is not None and frame.error.get("kind") == "ctx_conflict":
                refused.append(
                    msgspec.structs.replace(event, do="fail", set_ctx={}, error=frame.error)
                )
    return refused


def in_our_time(events: list[e.Event], clock: int) -> list[e.Event]:
    """The end of a pause by the server's clock: the worker's may be an hour ahead (T9)."""
    if not clock or e.TaskSuspended not in map(type, events):
        return events
    ahead = clock - now()
    return [
        msgspec.structs.replace(event, due=event.due - ahead)
        if type(event) is e.TaskSuspended and event.due is not None
        else event
        for event in events
    ]


def code_of(wrong: NoetlError) -> str:
    if isinstance(wrong, ServerRefused):
        return wrong.code
    return CODES.get(type(wrong).__name__, "invalid")


CODES = {
    "ExecutionNotFound": "not_found",
    "PlaybookNotFound": "not_found",
    "UnreadableFile": "not_found",
    "LogUnavailable": "later",
    "ResultsUnavailable": "later",
    "OutcomeUnknown": "later",
    "VersionConflict": "later",
    "PlaceLost": "later",
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
STATUSES = {"ended": 403, "forbidden": 403, "moved": 421, "later": 503}
