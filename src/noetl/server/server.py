"""
The control plane at work: load, decide, append, dispatch. It decides nothing itself.

It is the only writer of the log for the executions it owns. Every `if` about steps, loops or
tokens belongs into `control`.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from noetl.control.decide import decide_next
from noetl.control.deciding import Deciding, Needs
from noetl.control.dispatch import may_run_ahead
from noetl.control.execution import Execution
from noetl.control.likely import likely
from noetl.control.limits import given_up, holds_place, hoping, released
from noetl.control.reporting import stands
from noetl.errors import NoetlError
from noetl.masking import KNOWN
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.codec import encode_events
from noetl.messages.names import SHOWN
from noetl.messages.outcome import CacheHit
from noetl.playbook.plan import Plan
from noetl.ports.bodies import Bodies
from noetl.ports.commit import Commit, committed
from noetl.ports.event_log import EventLog, ExecutionRow
from noetl.ports.result_store import ResultStore
from noetl.ports.session import Taken
from noetl.server.active import ActiveExecution
from noetl.server.appending import Appender
from noetl.server.clocks import Strikes, WaitClock
from noetl.server.handout import Handout, Runner
from noetl.server.loading import Decided, Loading, Spoiled, offers_in
from noetl.server.timers import arm_execution, now

if TYPE_CHECKING:
    from noetl.ports.limits import LimitClaim

GRANTS = 20
"""Bits of an epoch that count the leases of one owner; its term stands above them."""

AHEAD = 2000
"""Decisions that may wait for their commit before run-ahead pauses."""

RUN_ON = 8
"""Runs that may go into the row that ordered them: rows stay small enough to be paged through."""

REFUSED = Taken([], committed())

Watcher = Callable[[ActiveExecution, list[e.Event]], None]


class LimitFollower(Protocol):
    """Who asks for places under limits (LIMIT)."""

    def follow(self, active: ActiveExecution, events: list[e.Event], commit: Commit) -> None:
        """Something was decided: ask for what waits now."""

    def look_again(self, commit: Commit | None = None) -> None:
        """Somebody gave a place back."""

    def take_up(self, active: ActiveExecution) -> None:
        """It is decided here from now on, and may wait."""


class CacheFollower(Protocol):
    """Who keeps outcomes (CACHE-1)."""

    def follow(self, active: ActiveExecution, events: list[e.Event], commit: Commit) -> None:
        """Something was decided: keep what is to be kept of it, once it is committed."""

    async def find(self, active: ActiveExecution, task: str, key: str) -> CacheHit | None:
        """What is kept for this task under this key."""


class Aside(Protocol):
    """What few playbooks need, made when one does."""

    @property
    def limits(self) -> LimitFollower: ...
    @property
    def cache(self) -> CacheFollower: ...


class Server:
    """Owns executions: takes inputs, writes decisions, hands out parts."""

    runner: Runner
    aside: Aside

    def __init__(
        self, *, log: EventLog, results: ResultStore, bodies: Bodies, me: str, run_ahead: bool
    ) -> None:
        self._run_ahead = run_ahead
        self._active: dict[str, ActiveExecution] = {}
        self.watchers: list[Watcher] = []
        """Called after each decision (live output)."""
        self._chores: set[asyncio.Task[Any]] = set()
        self.errors_passed = self.failures_handled = 0
        """Of the executions that ended here."""
        self.appender = Appender(log, results, me, self.chore)
        self._loading = Loading(self, log, bodies)
        self.handout = Handout(self)
        self.strikes = Strikes()

    # ── executions ───────────────────────────────────────────────────────────────────────────

    def start(
        self,
        request: r.StartExecution,
        plan: Plan,
        folder: str | None,
        term: int = 0,
        claim: "LimitClaim | None" = None,
    ) -> ActiveExecution:
        """SRV-2. The execution exists when the decision is committed, under its `claim`."""
        active = self._own(Execution(execution_id=request.execution_id), plan, folder, term)
        active.claim = claim
        active.started_at = now()
        active.version = request.version
        active.begun = self.receive(active, request).committed
        arm_execution(self, active)
        return active

    def go_on(
        self,
        execution: Execution,
        plan: Plan,
        row: ExecutionRow,
        folder: str | None,
        term: int = 0,
    ) -> ActiveExecution:
        """Take up an execution where its log stands."""
        active = self._own(execution, plan, folder, term)
        active.started_at, active.version = row.started_at, row.version
        active.ended_at = row.finished_at
        if execution.finished:
            active.end()
            return active
        arm_execution(self, active)
        self.handout.offer_open(active)
        if plan.limited:
            self.aside.limits.take_up(active)
        if active.clock is not None:
            active.clock.begin()
        return active

    def _own(
        self, execution: Execution, plan: Plan, folder: str | None, term: int
    ) -> ActiveExecution:
        """
        Open parts get a new epoch. Where workers may hold leases that no log has heard of yet,
        `term` is greater than that of every owner before: epochs of two owners never meet.
        """
        epochs = [part.epoch for run in execution.runs.values() for part in run.parts.values()]
        first = max(max(epochs, default=0) + 1, term << GRANTS)
        active = ActiveExecution(execution, plan, folder=folder, term=first)
        active.settle = partial(self._settle, active)
        if plan.waits:
            from noetl.server.asked import AskedPeople  # few playbooks wait

            active.clock, active.asked = WaitClock(self, active), AskedPeople(execution)
        self._active[execution.execution_id] = active
        return active

    @property
    def owned(self) -> list[ActiveExecution]:
        return list(self._active.values())

    def find(self, execution_id: str) -> ActiveExecution | None:
        return self._active.get(execution_id)

    def is_active(self, active: ActiveExecution) -> bool:
        return self._active.get(active.execution.execution_id) is active

    def release(self, execution_id: str) -> None:
        self._active.pop(execution_id, None)

    @property
    def runs_ahead(self) -> bool:
        return self._run_ahead and self.appender.uncommitted <= AHEAD

    # ── inputs ───────────────────────────────────────────────────────────────────────────────

    def receive(
        self, active: ActiveExecution, given: r.Input, *, notes: tuple[int, ...] = ()
    ) -> Taken:
        """Load, decide, append, dispatch. The answer is there at once; the commit follows."""
        if active.inputs:
            return self._loading.queue(active, given, notes)
        execution = active.execution
        guess = likely(active.plan, execution, given)
        if guess and (wanted := self._loading.missing(guess)):
            return self._loading.queue(active, given, notes, Needs(tuple(wanted)))
        expected, at = execution.seq, now()
        hoped = hoping(active.plan, execution)
        try:
            deciding = fresh_deciding(active, self._loading)
            events = self._decided(deciding, given, at)
            offers = offers_in(events)
            if offers and active.plan.inline:
                offers = self._run_on(active, deciding, events, offers, at)
            left = given_up(hoped, active.plan, execution)
            decided = Decided(events, encode_events(events), offers, expected, at, left)
        except Spoiled as spoiled:
            return self._loading.queue(active, given, notes, spoiled.needs, again=True)
        except Exception as fault:  # promise 7: whatever it is, the others go on
            self.drop(active, fault)
            return REFUSED
        return self.record(active, decided, notes)

    def record(self, active: ActiveExecution, decided: Decided, notes: tuple[int, ...]) -> Taken:
        """Append what was decided on the state as it is now, and dispatch."""
        events, expected = decided.events, decided.expected
        if not events:
            return REFUSED
        releases = released(active.plan, events) + decided.given_up if active.plan.limited else ()
        changed = active.asked is not None and active.asked.follow(events)
        runs = active.execution.runs
        parts = [offered for offered in decided.offers if offered.step_run_id in runs]
        commit = self.appender.append(
            active,
            expected,
            decided.at,
            decided.text,
            shown=changed or not expected or not SHOWN.isdisjoint(map(type, events)),
            alone=self._is_alone(active, parts, expected),
            notes=notes,
            releases=releases,
            holds=not expected and active.plan.limit is not None and holds_place(events),
        )
        if releases:
            commit.add_done_callback(self.aside.limits.look_again)
        self._dispatch(active, events, parts, commit)
        return Taken(events, commit)

    def take(self, execution_id: str, report: r.Report) -> Taken:
        """A worker's report."""
        active = self._active.get(execution_id)
        if active is None or report.epoch < active.term:  # a worker of an owner before this one
            return REFUSED
        return self.receive(active, report)

    # ── deciding ─────────────────────────────────────────────────────────────────────────────

    def _decided(self, deciding: Deciding, given: r.Input, at: int) -> list[e.Event]:
        found = decide_next(deciding, given, at=at)
        if isinstance(found, Needs):
            raise Spoiled(found)
        return found

    def _run_on(
        self,
        active: ActiveExecution,
        deciding: Deciding,
        events: list[e.Event],
        offers: list[e.TokenEnqueued],
        at: int,
    ) -> list[e.TokenEnqueued]:
        """
        What waits for nothing and touches nothing goes into the row that ordered it: whoever reads
        the log finds what he would have found, and nothing is written or waited for in between.

        Returns the offers that are left.
        """
        runs, inline = active.execution.runs, active.plan.inline
        left = RUN_ON if self.runs_ahead else 0
        kept: list[e.TokenEnqueued] = []
        for offered in offers:  # they become more meanwhile
            report = None
            if left > 0 and offered.step in inline:
                run = runs[offered.step_run_id]
                report = self.handout.run_through(active, run, run.parts[offered.part])
            if report is None:
                kept.append(offered)
                continue
            left -= 1
            active.tail += 1  # recovery reads it like a row of its own
            fresh = self._decided(deciding, report, at)
            events += fresh
            offers += offers_in(fresh)
        return kept

    # ── appending and dispatching ────────────────────────────────────────────────────────────

    def _is_alone(
        self, active: ActiveExecution, parts: list[e.TokenEnqueued], expected: int
    ) -> bool:
        """Whether nothing may run ahead of this commit: else the disk works beside it."""
        if self.appender.uncommitted or len(self._active) != 1:
            return False
        if active.execution.finished and not expected:
            return False  # over with its first row: the next of many may begin beside it
        for run in active.execution.runs.values():
            if run.parts and run.loop is not None and run.loop.exec == "distributed":
                return False  # other iterations are at work, and may have something to tell
        if not self._run_ahead:
            return True
        steps = active.plan.steps
        return not self.handout and not any(may_run_ahead(steps[part.step]) for part in parts)

    def _dispatch(
        self,
        active: ActiveExecution,
        events: list[e.Event],
        parts: list[e.TokenEnqueued],
        commit: Commit,
    ) -> None:
        if active.execution.stop and e.ExecutionCancelled in map(type, events):
            self._stop(active)
        if parts:
            self.handout.follow(active, parts, commit)
        if active.plan.limited:
            self.aside.limits.follow(active, events, commit)
        if active.plan.cached:
            self.aside.cache.follow(active, events, commit)
        if active.clock is not None:
            active.clock.follow(events)
        if active.plan.effect:
            self.handout.tidy(active, events)
        if self.watchers:
            show(self.watchers, active, events)

    def _stop(self, active: ActiveExecution) -> None:
        """
        NEXT-8: whoever runs is told. What stops of itself still has its final step (NEXT-6), which
        may begin with this very decision: then those are told that are not it.
        """
        execution = active.execution
        if execution.stop == "cancel" or active.plan.final is None:
            self.chore(self.runner.cancel(execution.execution_id))
            return
        for run in execution.runs.values():
            if run.step != active.plan.final:
                self.chore(self.runner.cancel(execution.execution_id, run.step_run_id))

    def _settle(self, active: ActiveExecution, commit: Commit) -> None:
        self.appender.uncommitted -= 1
        active.uncommitted -= 1
        fault = commit.exception()
        if fault is not None:
            self.drop(active, fault)
        elif active.execution.finished and active.uncommitted == 0:
            self.errors_passed += active.execution.errors_passed
            self.failures_handled += active.execution.failures_handled
            active.end()
        for listener in tuple(active.listeners):
            listener()

    def drop(self, active: ActiveExecution, fault: BaseException) -> None:
        """The state in memory is not what the log says: forget it, and whoever waits is told."""
        if self.is_active(active):
            del self._active[active.execution.execution_id]
            self.chore(self.runner.cancel(active.execution.execution_id))
        if not isinstance(fault, NoetlError):
            said = KNOWN.masked(f"a bug in NoETL: {type(fault).__name__}: {fault}")
            wrapped = NoetlError(f"{said}; the log is sound, and `noetl resume` goes on from it")
            wrapped.__cause__ = fault
            fault = wrapped
        self.appender.refuse_held(active, fault)
        waiting = list(active.inputs)
        active.inputs.clear()
        for one in waiting:
            one.commit.settle(fault)
        active.end(fault)

    def chore(self, work: Any) -> None:
        """Something to do beside, that nobody waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)


def has_failed(report: r.Report) -> bool:
    """LOOP-4: what starts after a failure and what before it is told by the order of reports."""
    return any(type(event) is e.IterationFailed for event in report.events)


def show(watchers: list[Watcher], active: ActiveExecution, events: list[e.Event]) -> None:
    """Whoever watches and fails (its pipe is closed) is not shown anything any more."""
    for watcher in tuple(watchers):
        try:
            watcher(active, events)
        except Exception:  # promise 7: a run does not end because its picture cannot be drawn
            watchers.remove(watcher)


def take_turn(server: Server, execution_id: str, reports: list[r.Report]) -> list[Taken]:
    """Reports on parts of one loop that a worker made in one turn: one decision, one row."""
    active = server.find(execution_id)
    if active is None or active.inputs or len(reports) == 1 or any(map(has_failed, reports)):
        return [server.take(execution_id, report) for report in reports]
    run = active.execution.runs.get(reports[0].step_run_id)
    good = [one for one in reports if one.epoch >= active.term and stands(run, one)]
    if not good:
        return [REFUSED] * len(reports)
    active.tail += len(good) - 1  # recovery reads each like a row of its own
    taken = server.receive(active, msgspec.structs.replace(good[0], beside=good[1:]))
    return [taken if one in good else REFUSED for one in reports]


def fresh_deciding(active: ActiveExecution, loading: Loading) -> Deciding:
    """What the decisions of one row are made with."""
    plan, execution = active.plan, active.execution
    return Deciding(plan, execution, loading.bodies(), loading.lost, hurried=True)
