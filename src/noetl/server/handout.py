"""
Which parts are begun, and when? And what of those that nobody runs?

Effect barrier (promise 8): a part that may touch the world is begun after the commit of its order.
One without an effect may run ahead of it, and what it leads to still waits.
"""

import asyncio
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from noetl.control.dispatch import Command, command, due_of, may_run_ahead, open_parts, runs_inline
from noetl.control.execution import Execution, Part, Run, is_stopped
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.outcome import make_error
from noetl.playbook.plan import Plan
from noetl.ports.commit import Commit, committed
from noetl.server.active import ActiveExecution
from noetl.server.delays import Delays, Key
from noetl.server.timers import arm_step, now

if TYPE_CHECKING:
    from noetl.server.server import Server

TURN = 0.005
"""Seconds of parts without waiting before the event loop gets a turn."""

ENDS = frozenset((e.StepDone, e.StepFailed, e.LoopDone))
STOPPED = make_error("cancelled", "it was stopped")


class Runner(Protocol):
    """Whoever runs parts: the worker in this process, or the dispatcher to others."""

    name: str

    def begin(self, command: Command, plan: Plan, folder: str | None) -> None: ...

    def run_through(self, plan: Plan, execution: Execution, run: Run) -> list[e.Event] | None: ...

    async def cancel(self, execution_id: str, step_run_id: str | None = None) -> None: ...

    async def forget(self, scratch: str) -> None: ...

    def keeps(self, active: ActiveExecution, run: Run, part: Part) -> bool:
        """Whether the worker that had this part before this process may go on with it."""


class Handout:
    """The parts that are ready to be begun, in order."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._ready: deque[Key] = deque()
        self._delays = Delays(self._offer_now)
        self._pumping = False

    def __bool__(self) -> bool:
        return bool(self._ready)

    def follow(self, active: ActiveExecution, parts: list[e.TokenEnqueued], commit: Commit) -> None:
        """What a row orders: now where that is allowed, else after its commit."""
        # What refers to a body that is still on its way to the store waits for it, too.
        ahead = self._server.runs_ahead and not active.held
        for part in parts:
            key = (active, part.step_run_id, part.part)
            pure = may_run_ahead(active.plan.steps[part.step])
            if commit.done() or (pure and ahead):
                self._ready.append(key)
            else:
                commit.add_done_callback(partial(self.offer, key))
        if self._ready:
            self._pump_soon()

    def offer(self, key: Key, commit: Commit) -> None:
        """The log has the order: begin it when it is due."""
        active, run_id, number = key
        if commit.exception() is not None:
            return
        if active.inputs:  # its state is being read again
            active.postponed.append((run_id, number))
            return
        run = active.execution.runs.get(run_id)
        part = run.parts.get(number) if run is not None else None
        self.offer_when_due(key, None if run is None or part is None else due_of(run, part))

    def offer_postponed(self, active: ActiveExecution) -> None:
        """Its state can be looked at again."""
        postponed, active.postponed = active.postponed, []
        for run_id, number in postponed:
            self.offer((active, run_id, number), committed())

    def offer_when_due(self, key: Key, due: int | None) -> None:
        """TASK-8: a part that waits for a time is begun when it has come."""
        if due is None or not self._delays.add(key, due):
            self._offer_now(key)

    def _offer_now(self, key: Key) -> None:
        self._ready.append(key)
        self._pump_soon()

    def offer_open(self, active: ActiveExecution) -> None:
        """What the log says is open, and what stopped runs have to say (NEXT-8)."""
        for run in active.execution.runs.values():
            arm_step(self._server, active, run)
        for run, part in list(open_parts(active.execution)):
            if not self._server.runner.keeps(active, run, part):
                key = (active, run.step_run_id, part.part)
                self.offer_when_due(key, due_of(run, part))
        self.end_stopped(active)

    def lose(self, active: ActiveExecution, lost: r.LeaseLost) -> None:
        """A lease has ended: the part is offered again once the log has it (WRK-1)."""
        taken = self._server.receive(active, lost)
        key = (active, lost.step_run_id, lost.part)
        taken.committed.add_done_callback(partial(self.offer, key))

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
            if active.inputs:  # its state is being read again
                active.postponed.append((run_id, number))
                continue
            run = active.execution.runs.get(run_id)
            part = run.parts.get(number) if run is not None else None
            if run is not None and part is not None and self._server.is_active(active):
                self._begin(active, run, part)
            if time.monotonic() > until:
                break
        self._pumping = False
        if self._ready:
            self._pump_soon()

    def _begin(self, active: ActiveExecution, run: Run, part: Part) -> None:
        epoch = max(active.term, part.epoch + 1)
        if is_stopped(active.execution, active.plan, run.step):  # NEXT-8: nothing new starts
            self.fail_part(active, run, part.part, epoch)
            return
        report = self.run_through(active, run, part)
        if report is not None:
            self._server.receive(active, report)
            return
        arm_step(self._server, active, run)
        ordered = command(active.plan, active.execution, run, part, epoch, at=now())
        self._server.runner.begin(ordered, active.plan, active.folder)

    def run_through(self, active: ActiveExecution, run: Run, part: Part) -> r.Report | None:
        """The fast lane for a run that waits for nothing; None if it must go the ordinary way."""
        if not runs_inline(active.plan, active.execution, run):
            return None
        runner = self._server.runner
        events = runner.run_through(active.plan, active.execution, run)
        if events is None:
            return None
        return r.Report(
            step_run_id=run.step_run_id,
            part=part.part,
            epoch=max(active.term, part.epoch + 1),
            worker=runner.name,
            events=events,
        )

    # ── parts that nobody runs any more ──────────────────────────────────────────────────────

    def end_stopped(self, active: ActiveExecution) -> None:
        """NEXT-8: of runs that were told to stop and have no worker any more, say so."""
        execution = active.execution
        for run, part in list(open_parts(execution)):
            if self._server.runner.keeps(active, run, part):
                continue
            if is_stopped(execution, active.plan, run.step) and run.step_run_id in execution.runs:
                self.fail_part(active, run, part.part, max(active.term, part.epoch + 1))

    def fail_part(
        self,
        active: ActiveExecution,
        of: Command | Run,
        part: int,
        epoch: int,
        error: dict[str, Any] = STOPPED,
    ) -> None:
        """The server speaks in the place of a worker: the run fails, or was stopped (NEXT-8)."""
        failed = e.StepFailed(
            step=of.step, step_run_id=of.step_run_id, error=error, source="server"
        )
        report = r.Report(
            step_run_id=of.step_run_id,
            part=part,
            epoch=epoch,
            worker="server",
            events=[failed],
            after=None,
        )
        self._server.receive(active, report)

    def tidy(self, active: ActiveExecution, events: list[e.Event]) -> None:
        """Tools drop what lived as long as a run, and at the end what lived for the execution."""
        server, execution_id = self._server, active.execution.execution_id
        for event in events if not ENDS.isdisjoint(map(type, events)) else ():
            if type(event) not in ENDS or not isinstance(event, e.StepEvent):
                continue
            if isinstance(event, e.LoopDone) and event.parent_id is not None:
                continue  # a loop inside a task (LOOP-7): its run goes on
            if active.plan.steps[event.step].pipeline.effect:
                server.chore(server.runner.forget(f"{execution_id}/{event.step_run_id}"))
        if active.execution.finished:
            server.chore(server.runner.forget(execution_id))
