"""
The control plane at work: load, decide, append, dispatch. It decides nothing itself.

It is the only writer of the log for the executions it owns. Every `if` about steps, loops or
tokens belongs into `control`.
"""

import asyncio
from collections import ChainMap
from collections.abc import MutableMapping, Sequence
from functools import partial
from typing import Any

from noetl.control.decide import decide
from noetl.control.deciding import Needs
from noetl.control.dispatch import Command, due_of, may_run_ahead, open_parts
from noetl.control.execution import Execution, Run, is_stopped
from noetl.control.likely import likely
from noetl.errors import BodyLost, NoetlError
from noetl.masking import KNOWN
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.codec import encode_events
from noetl.messages.reference import Reference
from noetl.playbook.plan import Plan
from noetl.ports.bodies import Bodies
from noetl.ports.commit import Commit, committed
from noetl.ports.event_log import EventLog, ExecutionRow
from noetl.ports.result_store import ResultStore
from noetl.ports.session import PartLost, Taken
from noetl.server.active import ActiveExecution, Waiting
from noetl.server.appending import Appender
from noetl.server.handout import Handout, Runner
from noetl.server.replay import replay
from noetl.server.timers import arm_execution, arm_step, now

GRANTS = 20
"""Bits of an epoch that count the leases of one owner; its term stands above them."""

AHEAD = 2000
"""Decisions that may wait for their commit before run-ahead pauses."""

RUN_ON = 8
"""Runs that may go into the row that ordered them: rows stay small enough to be paged through."""

REFUSED = Taken([], committed())

STOPPED: dict[str, Any] = {"kind": "cancelled", "message": "it was stopped", "retryable": False}

SHOWN = {
    e.ExecutionRequested,
    e.ExecutionPaused,
    e.ExecutionResumed,
    e.ExecutionCancelled,
    e.WorkflowFinished,
}
"""Events after which a list of executions reads differently."""


class Spoiled(Exception):
    """A decision found that it needs bodies: the state has moved and must be read again."""

    def __init__(self, references: Sequence[Reference]) -> None:
        super().__init__()
        self.references = references


class Server:
    """Owns executions: takes inputs, writes decisions, hands out parts."""

    runner: Runner

    def __init__(
        self, *, log: EventLog, results: ResultStore, bodies: Bodies, me: str, run_ahead: bool
    ) -> None:
        self._log = log
        self._bodies = bodies
        self._run_ahead = run_ahead
        self._active: dict[str, ActiveExecution] = {}
        self._lost: dict[str, str] = {}
        """Bodies that were asked for and cannot be had, and why."""
        self._watchers: list[Any] = []
        self._chores: set[asyncio.Task[Any]] = set()
        self._appender = Appender(log, results, me, self.chore)
        self.handout = Handout(self)

    # ── executions ───────────────────────────────────────────────────────────────────────────

    def start(
        self, request: r.StartExecution, plan: Plan, folder: str | None, term: int = 0
    ) -> ActiveExecution:
        """SRV-2. The execution exists when the decision is committed."""
        active = self._own(Execution(execution_id=request.execution_id), plan, folder, term)
        active.started_at = now()
        active.version = request.version
        arm_execution(self, active)
        active.begun = self.receive(active, request).committed
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
        self._offer_open(active)
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
        self._active[execution.execution_id] = active
        return active

    def _offer_open(self, active: ActiveExecution) -> None:
        """What the log says is open, and what stopped runs have to say (NEXT-8)."""
        for run, part in list(open_parts(active.execution)):
            arm_step(self, active, run)
            if not self.runner.keeps(active, run, part):
                key = (active, run.step_run_id, part.part)
                self.handout.offer_when_due(key, due_of(run, part))
        self.end_stopped(active)

    def end_stopped(self, active: ActiveExecution) -> None:
        """NEXT-8: of runs that were told to stop and have no worker any more, say so."""
        execution = active.execution
        for run, part in list(open_parts(execution)):
            if self.runner.keeps(active, run, part):
                continue
            if is_stopped(execution, active.plan, run.step) and run.step_run_id in execution.runs:
                self.stop_part(active, run, part.part, max(active.term, part.epoch + 1))

    @property
    def owned(self) -> list[ActiveExecution]:
        return list(self._active.values())

    def find(self, execution_id: str) -> ActiveExecution | None:
        return self._active.get(execution_id)

    def is_active(self, active: ActiveExecution) -> bool:
        return self._active.get(active.execution.execution_id) is active

    def release(self, execution_id: str) -> None:
        self._active.pop(execution_id, None)

    def watch(self, watcher: Any) -> None:
        """Call `watcher(active, events)` after each decision (live output)."""
        self._watchers.append(watcher)

    @property
    def uncommitted(self) -> int:
        return self._appender.uncommitted

    @property
    def runs_ahead(self) -> bool:
        return self._run_ahead and self._appender.uncommitted <= AHEAD

    def row(self, active: ActiveExecution, at: int) -> ExecutionRow:
        return self._appender.row(active, at)

    # ── inputs ───────────────────────────────────────────────────────────────────────────────

    def receive(
        self, active: ActiveExecution, given: r.Input, *, notes: tuple[int, ...] = ()
    ) -> Taken:
        """Load, decide, append, dispatch. The answer is there at once; the commit follows."""
        if active.inputs:
            return self._queue(active, given, notes)
        execution = active.execution
        guess = likely(active.plan, execution, given)
        if guess and (wanted := self._missing(guess)):
            return self._queue(active, given, notes, wanted)
        expected, at = execution.seq, now()
        try:
            events = self._decided(active, given, at)
            if events and active.runs_through:
                self._run_on(active, events, at)
            text = encode_events(events)
        except Spoiled as spoiled:
            return self._queue(active, given, notes, spoiled.references, again=True)
        except Exception as fault:  # promise 7: whatever it is, the others go on
            self.drop(active, fault)
            return REFUSED
        if not events:
            return REFUSED
        parts, shown = outlook(events, execution)
        commit = self._appender.append(
            active,
            expected,
            at,
            text,
            shown=shown or not expected,
            alone=self._is_alone(active, parts, expected),
            notes=notes,
        )
        self._dispatch(active, events, parts, commit, shown=shown)
        return Taken(events, commit)

    def take(self, execution_id: str, report: r.Report) -> Taken:
        """A worker's report."""
        active = self._active.get(execution_id)
        if active is None or report.epoch < active.term:  # a worker of an owner before this one
            return REFUSED
        return self.receive(active, report)

    def lose(self, active: ActiveExecution, lost: r.LeaseLost) -> None:
        """A lease has ended: the part is offered again once the log has it (WRK-1)."""
        taken = self.receive(active, lost)
        key = (active, lost.step_run_id, lost.part)
        taken.committed.add_done_callback(partial(self.handout.offer, key))

    def stop_part(self, active: ActiveExecution, of: Command | Run, part: int, epoch: int) -> None:
        """NEXT-8: a part that nobody runs ends as cancelled."""
        self.fail_part(active, of, part, epoch, STOPPED)

    def fail_part(
        self,
        active: ActiveExecution,
        of: Command | Run,
        part: int,
        epoch: int,
        error: dict[str, Any],
    ) -> None:
        """The server speaks in the place of a worker: the run of this part fails."""
        failed = e.StepFailed(step=of.step, step_run_id=of.step_run_id, error=error)
        report = r.Report(
            step_run_id=of.step_run_id,
            part=part,
            epoch=epoch,
            worker="server",
            events=[failed],
            after=None,
        )
        self.receive(active, report)

    # ── deciding ─────────────────────────────────────────────────────────────────────────────

    def _decided(self, active: ActiveExecution, given: r.Input, at: int) -> list[e.Event]:
        at_hand = self._bodies.at_hand
        bodies: MutableMapping[str, Any] = ChainMap({}, at_hand) if at_hand else {}
        found = decide(active.plan, active.execution, given, at=at, bodies=bodies, lost=self._lost)
        if isinstance(found, Needs):
            raise Spoiled(found.references)
        return found

    def _run_on(self, active: ActiveExecution, events: list[e.Event], at: int) -> None:
        """
        What waits for nothing and touches nothing goes into the row that ordered it: whoever reads
        the log finds what he would have found, and nothing is written or waited for in between.
        """
        execution, steps = active.execution, active.plan.steps
        fresh, left = events, RUN_ON
        while left > 0 and self.runs_ahead:
            offers = [
                event
                for event in fresh
                if type(event) is e.TokenEnqueued and may_run_ahead(steps[event.step])
            ]
            if not offers:
                return
            fresh = []
            for offered in offers[:left]:
                run = execution.runs[offered.step_run_id]
                report = self.handout.run_through(active, run, run.parts[offered.part])
                if report is not None:
                    left -= 1
                    active.tail += 1  # recovery reads it like a row of its own
                    fresh += self._decided(active, report, at)
            events += fresh

    def _missing(self, references: Sequence[Reference]) -> list[Reference]:
        at_hand, lost = self._bodies.at_hand, self._lost
        return [one for one in references if one.key not in at_hand and one.key not in lost]

    # ── loading bodies ───────────────────────────────────────────────────────────────────────

    def _queue(
        self,
        active: ActiveExecution,
        given: r.Input,
        notes: tuple[int, ...],
        wanted: Sequence[Reference] = (),
        *,
        again: bool = False,
    ) -> Taken:
        """The input waits in its place until the bodies are there; nothing else is held up."""
        waiting = Waiting(given, notes, Commit())
        active.inputs.append(waiting)
        if len(active.inputs) == 1:
            self.chore(self._load(active, wanted, again=again))
        return Taken(None, waiting.commit)

    async def _load(
        self, active: ActiveExecution, wanted: Sequence[Reference], *, again: bool
    ) -> None:
        try:
            for reference in wanted:
                try:
                    await self._bodies.load(reference)
                except BodyLost as lost:  # RES-4: the template that touches it says so
                    self._lost[reference.key] = str(lost)
            if again:
                await active.settled()
                execution_id = active.execution.execution_id
                active.execution, _ = await replay(self._log, execution_id, active.plan)
        except Exception as fault:
            self.drop(active, fault)
            return
        waiting = list(active.inputs)
        active.inputs.clear()
        for one in waiting:
            taken = self.receive(active, one.given, notes=one.notes)
            _follow(one.commit, taken)
        if not active.inputs:
            self.handout.offer_postponed(active)

    # ── appending and dispatching ────────────────────────────────────────────────────────────

    def _is_alone(
        self, active: ActiveExecution, parts: list[e.TokenEnqueued], expected: int
    ) -> bool:
        """Whether nothing may run ahead of this commit: else the disk works beside it."""
        if self._appender.uncommitted or len(self._active) != 1:
            return False
        if active.execution.finished and not expected:
            return False  # over with its first row: the next of many may begin beside it
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
        *,
        shown: bool,
    ) -> None:
        if shown and any(type(event) is e.ExecutionCancelled for event in events):
            self.chore(self.runner.cancel(active.execution.execution_id))
        if parts:
            self.handout.follow(active, parts, commit)
        if active.touches_world:
            self._tidy(active, events)
        if self._watchers:
            self._show(active, events)

    def _tidy(self, active: ActiveExecution, events: list[e.Event]) -> None:
        """Tools drop what lived as long as a run, and at the end what lived for the execution."""
        execution_id = active.execution.execution_id
        for event in events:
            if not isinstance(event, e.StepDone | e.StepFailed | e.LoopDone):
                continue
            if isinstance(event, e.LoopDone) and event.parent_id is not None:
                continue  # a loop inside a task (LOOP-7): its run goes on
            if active.plan.steps[event.step].pipeline.effect:
                self.chore(self.runner.forget(f"{execution_id}/{event.step_run_id}"))
        if active.execution.finished:
            self.chore(self.runner.forget(execution_id))

    def _show(self, active: ActiveExecution, events: list[e.Event]) -> None:
        """Whoever watches and fails (its pipe is closed) is not shown anything any more."""
        for watcher in tuple(self._watchers):
            try:
                watcher(active, events)
            except Exception:  # promise 7: a run does not end because its picture cannot be drawn
                self._watchers.remove(watcher)

    def _settle(self, active: ActiveExecution, commit: Commit) -> None:
        self._appender.uncommitted -= 1
        active.uncommitted -= 1
        fault = commit.exception()
        if fault is not None:
            self.drop(active, fault)
        elif active.execution.finished and active.uncommitted == 0:
            active.end()
        for listener in tuple(active.listeners):
            listener()

    def drop(self, active: ActiveExecution, fault: BaseException) -> None:
        """The state in memory is not what the log says: forget it, and whoever waits is told."""
        if self.is_active(active):
            del self._active[active.execution.execution_id]
            self.chore(self.runner.cancel(active.execution.execution_id))
        if not isinstance(fault, NoetlError):
            said = KNOWN.masked(f"a fault of NoETL itself: {type(fault).__name__}: {fault}")
            wrapped = NoetlError(f"{said}; the log is sound, and `noetl resume` goes on from it")
            wrapped.__cause__ = fault
            fault = wrapped
        self._appender.refuse_held(active, fault)
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


def outlook(events: list[e.Event], execution: Execution) -> tuple[list[e.TokenEnqueued], bool]:
    """The parts that a row leaves to be run, and whether lists show something new after it."""
    runs = execution.runs
    parts: list[e.TokenEnqueued] = []
    shown = False
    for event in events:
        if type(event) is e.TokenEnqueued:
            if event.step_run_id in runs:
                parts.append(event)
        elif type(event) in SHOWN:
            shown = True
    return parts, shown


def _follow(commit: Commit, taken: Taken) -> None:
    """An input that had to wait gets the answer of the one that was decided in its place."""
    if taken.events == []:
        commit.settle(PartLost("it came too late, or twice"))
        return

    def pass_on(found: Commit) -> None:
        commit.refused = found.refused or refused_writes(taken.events or [])
        commit.settle(found.exception())

    taken.committed.add_done_callback(pass_on)


def refused_writes(events: list[e.Event]) -> list[e.Event]:
    """LOOP-5: outcomes whose write to ctx was turned into a failure."""
    return [
        event
        for event in events
        if type(event) is e.TaskDone
        and event.error is not None
        and event.error.get("kind") == "ctx_conflict"
    ]
