"""
The control plane at work: load, decide, append, hand out. It decides nothing itself.

It is the only writer of the log for the executions it owns. Every `if` about steps, loops or
tokens belongs into `control`.
"""

import asyncio
import time
from collections import deque
from functools import partial
from typing import Any, Protocol

from noetl.control.decide import decide
from noetl.control.dispatch import Command, command, due_of, open_parts
from noetl.control.execution import Execution, Part, Run, is_stopped
from noetl.errors import NoetlError
from noetl.masking import KNOWN
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.codec import encode_events
from noetl.messages.reference import Reference
from noetl.playbook.plan import Plan
from noetl.ports.bodies import Bodies
from noetl.ports.commit import Commit, committed
from noetl.ports.desk import Taken
from noetl.ports.event_log import Decision, EventLog, ExecutionRow
from noetl.ports.result_store import ResultStore
from noetl.server.active import ActiveExecution
from noetl.server.gist import gist
from noetl.server.replay import frozen
from noetl.server.timers import arm_execution, arm_step

GRANTS = 20
"""Bits of an epoch that count the leases of one owner; its term stands above them."""

AHEAD = 2000
"""Decisions that may wait for their commit before run-ahead pauses."""

RUN_ON = 8
"""Runs that may go into the row that ordered them: rows stay small enough to be paged through."""

TURN = 0.005
"""Seconds of parts without waiting before the event loop gets a turn."""


REFUSED = Taken([], committed())


STOPPED: dict[str, Any] = {"kind": "cancelled", "message": "it was stopped", "retryable": False}


class Runner(Protocol):
    """Whoever runs parts: the worker in this process, or the queue to others."""

    name: str

    def begin(self, command: Command, plan: Plan, folder: str | None) -> None: ...

    def run_through(self, plan: Plan, execution: Execution, run: Run) -> list[e.Event] | None: ...

    async def cancel(self, execution_id: str, step_run_id: str | None = None) -> None: ...

    async def forget(self, scratch: str) -> None: ...

    def keeps(self, active: ActiveExecution, run: Run, part: Part) -> bool:
        """Whether the worker that had this part before this process may go on with it."""


class Server:
    """Owns executions: takes inputs, writes decisions, hands out parts."""

    runner: Runner

    def __init__(
        self, *, log: EventLog, results: ResultStore, me: str, run_ahead: bool = True
    ) -> None:
        self._log = log
        self._results = results
        self._me = me
        self._run_ahead = run_ahead
        self._live: dict[str, ActiveExecution] = {}
        self._ready: deque[tuple[ActiveExecution, str, int]] = deque()
        self._pumping = False
        self._uncommitted = 0
        self._watchers: list[Any] = []
        self._chores: set[asyncio.Task[Any]] = set()

    # ── executions ───────────────────────────────────────────────────────────────────────────

    def adopt(
        self, execution: Execution, plan: Plan, folder: str | None, term: int = 0
    ) -> ActiveExecution:
        """
        Own an execution from now on; open parts get a new epoch.

        Where workers may hold leases that no log has heard of yet, `term` is greater than that of
        every owner before: epochs of two owners are never the same.
        """
        epochs = [part.epoch for run in execution.runs.values() for part in run.parts.values()]
        active = ActiveExecution(
            execution,
            plan,
            folder=folder,
            bodies=Bodies(self._results),
            term=max(max(epochs, default=0) + 1, term << GRANTS),
        )
        active.settle = partial(self._settle, active)
        self._live[execution.execution_id] = active
        return active

    def start(
        self, request: r.StartExecution, plan: Plan, folder: str | None, term: int = 0
    ) -> ActiveExecution:
        """SRV-2. The execution exists when the decision is committed."""
        active = self.adopt(Execution(execution_id=request.execution_id), plan, folder, term)
        active.started_at = int(time.time() * 1000)
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
        active = self.adopt(execution, plan, folder, term)
        active.started_at, active.version = row.started_at, row.version
        active.ended_at = row.finished_at
        if execution.finished:
            active.end()
            return active
        arm_execution(self, active)
        for run, part in open_parts(execution):
            if not self.runner.keeps(active, run, part):
                self._offer_when_due((active, run.step_run_id, part.part), due_of(run, part))
        self.end_stopped(active)
        self._pump_soon()
        return active

    def end_stopped(self, active: ActiveExecution) -> None:
        """NEXT-8: of runs that were told to stop and have no worker any more, say so."""
        execution = active.execution
        for run, part in list(open_parts(execution)):
            if self.runner.keeps(active, run, part):
                continue
            if is_stopped(execution, active.plan, run.step) and run.step_run_id in execution.runs:
                self._fail_part(active, run, part.part, max(active.term, part.epoch + 1), STOPPED)

    @property
    def owned(self) -> list[ActiveExecution]:
        return list(self._live.values())

    def lose(self, active: ActiveExecution, lost: r.LeaseLost) -> None:
        """A lease has ended: the part is offered again once the log has it (WRK-1)."""
        taken = self.receive(active, lost)
        key = (active, lost.step_run_id, lost.part)
        taken.committed.add_done_callback(partial(self._offer, key))

    def stop_part(self, active: ActiveExecution, command: Command) -> None:
        """NEXT-8: a part that nobody runs ends as cancelled."""
        self._fail_part(active, command, command.part, command.epoch, STOPPED)

    def give_up(self, active: ActiveExecution, command: Command, fault: BaseException) -> None:
        """A part that a fault of ours ended: the log says so, and the run fails."""
        said = KNOWN.masked(f"{type(fault).__name__}: {fault}")
        error = {"kind": "internal", "message": said}
        self._fail_part(active, command, command.part, command.epoch, error)

    def _fail_part(
        self,
        active: ActiveExecution,
        of: Command | Run,
        part: int,
        epoch: int,
        error: dict[str, Any],
    ) -> None:
        failed = e.StepFailed(step=of.step, step_run_id=of.step_run_id, error=error)
        self.receive(
            active,
            r.Report(
                step_run_id=of.step_run_id,
                part=part,
                epoch=epoch,
                worker="server",
                events=[failed],
                after=None,
            ),
        )

    def find(self, execution_id: str) -> ActiveExecution | None:
        return self._live.get(execution_id)

    def release(self, execution_id: str) -> None:
        self._live.pop(execution_id, None)

    def watch(self, watcher: Any) -> None:
        """Call `watcher(live, events)` after each decision (live output)."""
        self._watchers.append(watcher)

    @property
    def uncommitted(self) -> int:
        return self._uncommitted

    @property
    def far_ahead(self) -> bool:
        return self._uncommitted > AHEAD

    # ── inputs ───────────────────────────────────────────────────────────────────────────────

    def take(self, execution_id: str, report: r.Report) -> Taken:
        """A worker's report (see `worker.desk.Desk`)."""
        active = self._live.get(execution_id)
        if active is None or report.epoch < active.term:  # a worker of an owner before this one
            return REFUSED
        return self.receive(active, report)

    def receive(self, active: ActiveExecution, given: r.Input) -> Taken:
        """Decide, append, hand out. The answer is there at once; the commit follows."""
        execution = active.execution
        expected = execution.seq
        try:
            events = self._decided(active, given)
            if events and active.runs_through and self._run_ahead:
                self._run_on(active, events)
            if execution.bodies:
                self._store(execution)
            text = encode_events(events)
        except Exception as fault:  # promise 7: whatever it is, the others go on
            self._drop(active, fault)
            return REFUSED
        if not events:
            return REFUSED
        parts, shown = gist(events, execution)
        commit = self._append(active, expected, text, parts=parts, shown=shown or not expected)
        if shown:
            self._mind_cancel(active, events)
        if parts:
            self._follow(active, parts, commit)
        if active.touches_world:
            self._tidy(active, events)
        if self._watchers:
            self._show(active, events)
        return Taken(events, commit)

    def _decided(self, active: ActiveExecution, given: r.Input) -> list[e.Event]:
        load = partial(self._load, active)
        return decide(active.plan, active.execution, given, bodies=active.loaded, load=load)

    def _run_on(self, active: ActiveExecution, events: list[e.Event]) -> None:
        """
        What waits for nothing and touches nothing goes into the row that ordered it: whoever reads
        the log finds what he would have found, and nothing is written or waited for in between.
        """
        execution, steps = active.execution, active.plan.steps
        fresh, left = events, RUN_ON
        while left > 0 and not self.far_ahead:
            parts = [
                event
                for event in fresh
                if type(event) is e.TokenEnqueued and not steps[event.step].pipeline.effect
            ]
            if not parts:
                return
            fresh = []
            for offered in parts[:left]:
                run = execution.runs[offered.step_run_id]
                report = self._report_through(active, run, run.parts[offered.part])
                if report is not None:
                    left -= 1
                    active.tail += 1  # recovery reads it like a row of its own
                    fresh += self._decided(active, report)
            events += fresh

    def _show(self, active: ActiveExecution, events: list[e.Event]) -> None:
        """Whoever watches and fails (its pipe is closed) is not shown anything any more."""
        for watcher in tuple(self._watchers):
            try:
                watcher(active, events)
            except Exception:  # promise 7: a run does not end because its picture cannot be drawn
                self._watchers.remove(watcher)

    def _load(self, active: ActiveExecution, reference: Reference) -> Any:
        """A body that a template touched; the decision in the making may have made it itself."""
        self._store(active.execution)
        return active.bodies.load_now(reference)

    def _store(self, execution: Execution) -> None:
        """Bodies are durable before the events that refer to them (EVT-4)."""
        for body in execution.bodies.values():
            self._results.put_now(execution.execution_id, body)
        execution.bodies.clear()

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

    def _append(
        self,
        active: ActiveExecution,
        expected: int,
        text: bytes,
        *,
        parts: list[e.TokenEnqueued],
        shown: bool,
    ) -> Commit:
        execution = active.execution
        active.tail += 1
        snapshot = None
        if active.due_for_snapshot and not execution.finished:
            snapshot, active.tail = frozen(execution), 0
        at = int(time.time() * 1000)
        active.ended_at = at if execution.finished else None
        decision = Decision(
            execution_id=execution.execution_id,
            expected=expected,
            last=execution.seq,
            at=at,
            events=text,
            row=self.row(active, at) if shown else None,
            snapshot=snapshot,
        )
        self._uncommitted += 1
        active.uncommitted += 1
        # Over with its first row, each of a thousand that come at once would seem to be alone.
        short = execution.finished and expected == 0
        alone = self._uncommitted == 1 and len(self._live) == 1 and not short
        commit = self._log.append(decision, alone=alone and not self._goes_on(active, parts))
        commit.add_done_callback(active.settle)
        return commit

    def _goes_on(self, active: ActiveExecution, parts: list[e.TokenEnqueued]) -> bool:
        """Whether something may run ahead of this commit: then the disk works beside it."""
        if not self._run_ahead:
            return False
        steps = active.plan.steps
        return bool(self._ready) or any(not steps[part.step].pipeline.effect for part in parts)

    def _mind_cancel(self, active: ActiveExecution, events: list[e.Event]) -> None:
        if any(type(event) is e.ExecutionCancelled for event in events):
            self.chore(self.runner.cancel(active.execution.execution_id))

    def _settle(self, active: ActiveExecution, commit: Commit) -> None:
        self._uncommitted -= 1
        active.uncommitted -= 1
        fault = commit.exception()
        if fault is not None:
            self._drop(active, fault)
        elif active.execution.finished and active.uncommitted == 0:
            active.end()
        for listener in active.listeners:
            listener()

    def _drop(self, active: ActiveExecution, fault: BaseException) -> None:
        """The state in memory is not what the log says: forget it, and whoever waits is told."""
        if self._live.pop(active.execution.execution_id, None) is not None:
            self.chore(self.runner.cancel(active.execution.execution_id))
        if not isinstance(fault, NoetlError):
            said = KNOWN.masked(f"a fault of NoETL itself: {type(fault).__name__}: {fault}")
            wrapped = NoetlError(f"{said}; the log is sound, and `noetl resume` goes on from it")
            wrapped.__cause__ = fault
            fault = wrapped
        active.end(fault)

    def row(self, active: ActiveExecution, at: int) -> ExecutionRow:
        """What lists show of the execution from now on."""
        execution = active.execution
        error = execution.error
        return ExecutionRow(
            execution_id=execution.execution_id,
            path=execution.path,
            digest=execution.digest,
            status=execution.status,
            started_at=active.started_at,
            updated_at=at,
            version=active.version,
            finished_at=at if execution.finished else None,
            parent_execution_id=execution.parent_execution_id,
            owner=None if execution.finished else self._me,
            error=None if error is None else str(error.get("message", "")),
            seq=execution.seq,
        )

    # ── handing out ──────────────────────────────────────────────────────────────────────────

    def _follow(
        self, active: ActiveExecution, parts: list[e.TokenEnqueued], commit: Commit
    ) -> None:
        """Effect barrier: a part that may touch the world waits for the commit of its order."""
        for part in parts:
            key = (active, part.step_run_id, part.part)
            pure = not active.plan.steps[part.step].pipeline.effect
            if commit.done() or (pure and self._run_ahead and not self.far_ahead):
                self._ready.append(key)
            else:
                commit.add_done_callback(partial(self._offer, key))
        if self._ready:
            self._pump_soon()

    def _offer(self, key: tuple[ActiveExecution, str, int], commit: Commit) -> None:
        if commit.exception() is not None:
            return
        active, run_id, number = key
        run = active.execution.runs.get(run_id)
        part = run.parts.get(number) if run is not None else None
        self._offer_when_due(
            key, due_of(run, part) if run is not None and part is not None else None
        )

    def _offer_when_due(self, key: tuple[ActiveExecution, str, int], due: int | None) -> None:
        """TASK-8: a part that waits for a time is offered when it has come."""
        left = 0.0 if due is None else due / 1000 - time.time()
        if left > 0:
            asyncio.get_running_loop().call_later(left, self._offer_when_due, key, None)
            return
        self._ready.append(key)
        self._pump_soon()

    def pump(self) -> None:
        """Begin what is ready now, not in the next turn."""
        if self._ready:
            self._pump()

    def _pump_soon(self) -> None:
        if not self._pumping:
            self._pumping = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        """Begin what is ready. What needs no waiting runs here, one part after the other."""
        until = time.monotonic() + TURN
        while self._ready:
            active, run_id, number = self._ready.popleft()
            run = active.execution.runs.get(run_id)
            part = run.parts.get(number) if run is not None else None
            if run is not None and part is not None and self.is_live(active):
                self._begin(active, run, part)
            if time.monotonic() > until:
                break
        self._pumping = False
        if self._ready:
            self._pump_soon()

    def _begin(self, active: ActiveExecution, run: Run, part: Part) -> None:
        epoch = max(active.term, part.epoch + 1)
        if is_stopped(active.execution, active.plan, run.step):  # NEXT-8: nothing new starts
            self._fail_part(active, run, part.part, epoch, STOPPED)
            return
        if self._run_through(active, run, part):
            return
        arm_step(self, active, run)
        self.runner.begin(command(active.execution, run, part, epoch), active.plan, active.folder)

    def _run_through(self, active: ActiveExecution, run: Run, part: Part) -> bool:
        """The fast lane for a run that waits for nothing; False if it must go the ordinary way."""
        report = self._report_through(active, run, part)
        if report is None:
            return False
        self.receive(active, report)
        return True

    def _report_through(self, active: ActiveExecution, run: Run, part: Part) -> r.Report | None:
        step = active.plan.steps[run.step]
        if step.loop is not None or step.pipeline.effect or run.started:
            return None
        if is_stopped(active.execution, active.plan, run.step):
            return None
        events = self.runner.run_through(active.plan, active.execution, run)
        if events is None:
            return None
        return r.Report(
            step_run_id=run.step_run_id,
            part=part.part,
            epoch=max(active.term, part.epoch + 1),
            worker=self.runner.name,
            events=events,
        )

    def is_live(self, active: ActiveExecution) -> bool:
        return self._live.get(active.execution.execution_id) is active

    def chore(self, work: Any) -> None:
        """Something to do beside, that nobody waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
