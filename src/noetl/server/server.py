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
from noetl.control.dispatch import RunLeg, command, due_of, open_legs
from noetl.control.execution import Execution, Leg, Run, is_stopped
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
from noetl.server.gist import gist
from noetl.server.live import Live
from noetl.server.replay import frozen
from noetl.server.timers import arm_execution, arm_step

GRANTS = 20
"""Bits of an epoch that count the leases of one owner; its term stands above them."""

AHEAD = 2000
"""Decisions that may wait for their commit before run-ahead pauses."""

RUN_ON = 8
"""Runs that may go into the row that ordered them: rows stay small enough to be paged through."""

TURN = 0.005
"""Seconds of legs without waiting before the event loop gets a turn."""


REFUSED = Taken([], committed())


STOPPED: dict[str, Any] = {"kind": "cancelled", "message": "it was stopped", "retryable": False}


class Hands(Protocol):
    """Whoever runs legs: the worker in this process, or the queue to others."""

    name: str

    def begin(self, command: RunLeg, plan: Plan, folder: str | None) -> None: ...

    def run_through(self, plan: Plan, execution: Execution, run: Run) -> list[e.Event] | None: ...

    async def cancel(self, execution_id: str, step_run_id: str | None = None) -> None: ...

    async def forget(self, scratch: str) -> None: ...

    def keeps(self, live: Live, run: Run, leg: Leg) -> bool:
        """Whether the worker that had this leg before this process may go on with it."""


class Server:
    """Owns executions: takes inputs, writes decisions, hands out legs."""

    hands: Hands

    def __init__(
        self, *, log: EventLog, results: ResultStore, me: str, run_ahead: bool = True
    ) -> None:
        self._log = log
        self._results = results
        self._me = me
        self._run_ahead = run_ahead
        self._live: dict[str, Live] = {}
        self._ready: deque[tuple[Live, str, int]] = deque()
        self._pumping = False
        self._uncommitted = 0
        self._watchers: list[Any] = []
        self._chores: set[asyncio.Task[Any]] = set()

    # ── executions ───────────────────────────────────────────────────────────────────────────

    def adopt(self, execution: Execution, plan: Plan, folder: str | None, term: int = 0) -> Live:
        """
        Own an execution from now on; open legs get a new epoch.

        Where workers may hold leases that no log has heard of yet, `term` is greater than that of
        every owner before: epochs of two owners are never the same.
        """
        epochs = [leg.epoch for run in execution.runs.values() for leg in run.legs.values()]
        live = Live(
            execution,
            plan,
            folder=folder,
            bodies=Bodies(self._results),
            term=max(max(epochs, default=0) + 1, term << GRANTS),
        )
        live.settle = partial(self._settle, live)
        self._live[execution.execution_id] = live
        return live

    def start(
        self, request: r.StartExecution, plan: Plan, folder: str | None, term: int = 0
    ) -> Live:
        """SRV-2. The execution exists when the decision is committed."""
        live = self.adopt(Execution(execution_id=request.execution_id), plan, folder, term)
        live.started_at = int(time.time() * 1000)
        live.version = request.version
        arm_execution(self, live)
        live.begun = self.receive(live, request).committed
        return live

    def go_on(
        self,
        execution: Execution,
        plan: Plan,
        row: ExecutionRow,
        folder: str | None,
        term: int = 0,
    ) -> Live:
        """Take up an execution where its log stands."""
        live = self.adopt(execution, plan, folder, term)
        live.started_at, live.version = row.started_at, row.version
        live.ended_at = row.finished_at
        if execution.finished:
            live.end()
            return live
        arm_execution(self, live)
        for run, leg in open_legs(execution):
            if not self.hands.keeps(live, run, leg):
                self._offer_when_due((live, run.step_run_id, leg.leg), due_of(run, leg))
        self.end_stopped(live)
        self._pump_soon()
        return live

    def end_stopped(self, live: Live) -> None:
        """NEXT-8: of runs that were told to stop and have no worker any more, say so."""
        execution = live.execution
        for run, leg in list(open_legs(execution)):
            if self.hands.keeps(live, run, leg):
                continue
            if is_stopped(execution, live.plan, run.step) and run.step_run_id in execution.runs:
                self._fail_leg(live, run, leg.leg, max(live.term, leg.epoch + 1), STOPPED)

    @property
    def lives(self) -> list[Live]:
        return list(self._live.values())

    def lose(self, live: Live, lost: r.LeaseLost) -> None:
        """A lease has ended: the leg is offered again once the log has it (WRK-1)."""
        taken = self.receive(live, lost)
        key = (live, lost.step_run_id, lost.leg)
        taken.committed.add_done_callback(partial(self._offer, key))

    def stop_leg(self, live: Live, command: RunLeg) -> None:
        """NEXT-8: a leg that nobody runs ends as cancelled."""
        self._fail_leg(live, command, command.leg, command.epoch, STOPPED)

    def give_up(self, live: Live, command: RunLeg, fault: BaseException) -> None:
        """A leg that a fault of ours ended: the log says so, and the run fails."""
        said = KNOWN.masked(f"{type(fault).__name__}: {fault}")
        error = {"kind": "internal", "message": said}
        self._fail_leg(live, command, command.leg, command.epoch, error)

    def _fail_leg(
        self, live: Live, of: RunLeg | Run, leg: int, epoch: int, error: dict[str, Any]
    ) -> None:
        failed = e.StepFailed(step=of.step, step_run_id=of.step_run_id, error=error)
        self.receive(
            live,
            r.Report(
                step_run_id=of.step_run_id,
                leg=leg,
                epoch=epoch,
                worker="server",
                events=[failed],
                after=None,
            ),
        )

    def find(self, execution_id: str) -> Live | None:
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
        live = self._live.get(execution_id)
        if live is None or report.epoch < live.term:  # a worker of an owner before this one
            return REFUSED
        return self.receive(live, report)

    def receive(self, live: Live, given: r.Input) -> Taken:
        """Decide, append, hand out. The answer is there at once; the commit follows."""
        execution = live.execution
        expected = execution.seq
        try:
            events = self._decided(live, given)
            if events and live.runs_through and self._run_ahead:
                self._run_on(live, events)
            if execution.bodies:
                self._store(execution)
            text = encode_events(events)
        except Exception as fault:  # promise 7: whatever it is, the others go on
            self._drop(live, fault)
            return REFUSED
        if not events:
            return REFUSED
        legs, shown = gist(events, execution)
        commit = self._append(live, expected, text, legs=legs, shown=shown or not expected)
        if shown:
            self._mind_cancel(live, events)
        if legs:
            self._follow(live, legs, commit)
        if live.touches_world:
            self._tidy(live, events)
        if self._watchers:
            self._show(live, events)
        return Taken(events, commit)

    def _decided(self, live: Live, given: r.Input) -> list[e.Event]:
        load = partial(self._load, live)
        return decide(live.plan, live.execution, given, bodies=live.loaded, load=load)

    def _run_on(self, live: Live, events: list[e.Event]) -> None:
        """
        What waits for nothing and touches nothing goes into the row that ordered it: whoever reads
        the log finds what he would have found, and nothing is written or waited for in between.
        """
        execution, steps = live.execution, live.plan.steps
        fresh, left = events, RUN_ON
        while left > 0 and not self.far_ahead:
            legs = [
                event
                for event in fresh
                if type(event) is e.TokenEnqueued and not steps[event.step].pipeline.effect
            ]
            if not legs:
                return
            fresh = []
            for offered in legs[:left]:
                run = execution.runs[offered.step_run_id]
                report = self._report_through(live, run, run.legs[offered.leg])
                if report is not None:
                    left -= 1
                    fresh += self._decided(live, report)
            events += fresh

    def _show(self, live: Live, events: list[e.Event]) -> None:
        """Whoever watches and fails (its pipe is closed) is not shown anything any more."""
        for watcher in tuple(self._watchers):
            try:
                watcher(live, events)
            except Exception:  # promise 7: a run does not end because its picture cannot be drawn
                self._watchers.remove(watcher)

    def _load(self, live: Live, reference: Reference) -> Any:
        """A body that a template touched; the decision in the making may have made it itself."""
        self._store(live.execution)
        return live.bodies.load_now(reference)

    def _store(self, execution: Execution) -> None:
        """Bodies are durable before the events that refer to them (EVT-4)."""
        for body in execution.bodies.values():
            self._results.put_now(execution.execution_id, body)
        execution.bodies.clear()

    def _tidy(self, live: Live, events: list[e.Event]) -> None:
        """Tools drop what lived as long as a run, and at the end what lived for the execution."""
        execution_id = live.execution.execution_id
        for event in events:
            if not isinstance(event, e.StepDone | e.StepFailed | e.LoopDone):
                continue
            if isinstance(event, e.LoopDone) and event.parent_id is not None:
                continue  # a loop inside a task (LOOP-7): its run goes on
            if live.plan.steps[event.step].pipeline.effect:
                self.chore(self.hands.forget(f"{execution_id}/{event.step_run_id}"))
        if live.execution.finished:
            self.chore(self.hands.forget(execution_id))

    def _append(
        self,
        live: Live,
        expected: int,
        text: bytes,
        *,
        legs: list[e.TokenEnqueued],
        shown: bool,
    ) -> Commit:
        execution = live.execution
        live.tail += 1
        snapshot = None
        if live.due_for_snapshot and not execution.finished:
            snapshot, live.tail = frozen(execution), 0
        at = int(time.time() * 1000)
        live.ended_at = at if execution.finished else None
        decision = Decision(
            execution_id=execution.execution_id,
            expected=expected,
            last=execution.seq,
            at=at,
            events=text,
            row=self.row(live, at) if shown else None,
            snapshot=snapshot,
        )
        self._uncommitted += 1
        live.uncommitted += 1
        alone = self._uncommitted == 1 and len(self._live) == 1 and not self._goes_on(live, legs)
        commit = self._log.append(decision, alone=alone)
        commit.add_done_callback(live.settle)
        return commit

    def _goes_on(self, live: Live, legs: list[e.TokenEnqueued]) -> bool:
        """Whether something may run ahead of this commit: then the disk works beside it."""
        if not self._run_ahead:
            return False
        steps = live.plan.steps
        return bool(self._ready) or any(not steps[leg.step].pipeline.effect for leg in legs)

    def _mind_cancel(self, live: Live, events: list[e.Event]) -> None:
        if any(type(event) is e.ExecutionCancelled for event in events):
            self.chore(self.hands.cancel(live.execution.execution_id))

    def _settle(self, live: Live, commit: Commit) -> None:
        self._uncommitted -= 1
        live.uncommitted -= 1
        fault = commit.exception()
        if fault is not None:
            self._drop(live, fault)
        elif live.execution.finished and live.uncommitted == 0:
            live.end()
        for listener in live.listeners:
            listener()

    def _drop(self, live: Live, fault: BaseException) -> None:
        """The state in memory is not what the log says: forget it, and whoever waits is told."""
        if self._live.pop(live.execution.execution_id, None) is not None:
            self.chore(self.hands.cancel(live.execution.execution_id))
        if not isinstance(fault, NoetlError):
            said = KNOWN.masked(f"a fault of NoETL itself: {type(fault).__name__}: {fault}")
            wrapped = NoetlError(f"{said}; the log is sound, and `noetl resume` goes on from it")
            wrapped.__cause__ = fault
            fault = wrapped
        live.end(fault)

    def row(self, live: Live, at: int) -> ExecutionRow:
        """What lists show of the execution from now on."""
        execution = live.execution
        error = execution.error
        return ExecutionRow(
            execution_id=execution.execution_id,
            path=execution.path,
            digest=execution.digest,
            status=execution.status,
            started_at=live.started_at,
            updated_at=at,
            version=live.version,
            finished_at=at if execution.finished else None,
            parent_execution_id=execution.parent_execution_id,
            owner=None if execution.finished else self._me,
            error=None if error is None else str(error.get("message", "")),
            seq=execution.seq,
        )

    # ── handing out ──────────────────────────────────────────────────────────────────────────

    def _follow(self, live: Live, legs: list[e.TokenEnqueued], commit: Commit) -> None:
        """Effect barrier: a leg that may touch the world waits for the commit of its order."""
        for leg in legs:
            key = (live, leg.step_run_id, leg.leg)
            pure = not live.plan.steps[leg.step].pipeline.effect
            if commit.done() or (pure and self._run_ahead and not self.far_ahead):
                self._ready.append(key)
            else:
                commit.add_done_callback(partial(self._offer, key))
        if self._ready:
            self._pump_soon()

    def _offer(self, key: tuple[Live, str, int], commit: Commit) -> None:
        if commit.exception() is not None:
            return
        live, run_id, number = key
        run = live.execution.runs.get(run_id)
        leg = run.legs.get(number) if run is not None else None
        self._offer_when_due(key, due_of(run, leg) if run is not None and leg is not None else None)

    def _offer_when_due(self, key: tuple[Live, str, int], due: int | None) -> None:
        """TASK-8: a leg that waits for a time is offered when it has come."""
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
        """Begin what is ready. What needs no waiting runs here, one leg after the other."""
        until = time.monotonic() + TURN
        while self._ready:
            live, run_id, number = self._ready.popleft()
            run = live.execution.runs.get(run_id)
            leg = run.legs.get(number) if run is not None else None
            if run is not None and leg is not None and self.is_live(live):
                self._begin(live, run, leg)
            if time.monotonic() > until:
                break
        self._pumping = False
        if self._ready:
            self._pump_soon()

    def _begin(self, live: Live, run: Run, leg: Leg) -> None:
        epoch = max(live.term, leg.epoch + 1)
        if is_stopped(live.execution, live.plan, run.step):  # NEXT-8: nothing new starts
            self._fail_leg(live, run, leg.leg, epoch, STOPPED)
            return
        if self._run_through(live, run, leg):
            return
        arm_step(self, live, run)
        self.hands.begin(command(live.execution, run, leg, epoch), live.plan, live.folder)

    def _run_through(self, live: Live, run: Run, leg: Leg) -> bool:
        """The fast lane for a run that waits for nothing; False if it must go the ordinary way."""
        report = self._report_through(live, run, leg)
        if report is None:
            return False
        self.receive(live, report)
        return True

    def _report_through(self, live: Live, run: Run, leg: Leg) -> r.Report | None:
        step = live.plan.steps[run.step]
        if step.loop is not None or step.pipeline.effect or run.started:
            return None
        if is_stopped(live.execution, live.plan, run.step):
            return None
        events = self.hands.run_through(live.plan, live.execution, run)
        if events is None:
            return None
        return r.Report(
            step_run_id=run.step_run_id,
            leg=leg.leg,
            epoch=max(live.term, leg.epoch + 1),
            worker=self.hands.name,
            events=events,
        )

    def is_live(self, live: Live) -> bool:
        return self._live.get(live.execution.execution_id) is live

    def chore(self, work: Any) -> None:
        """Something to do beside, that nobody waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
