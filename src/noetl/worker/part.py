"""One part of a step run at work: it drives pipelines, answers what they ask, and reports."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import UNSET

from noetl.control.dispatch import Command
from noetl.control.reducers import LOOKS_INTO
from noetl.control.timing import too_long
from noetl.errors import BodyLost
from noetl.masking import KNOWN
from noetl.messages import events as e
from noetl.messages.fitting import INLINE, is_small
from noetl.messages.outcome import make_error
from noetl.pipeline.asks import (
    Ask,
    AwaitAnswer,
    Breathe,
    CallTool,
    FindKept,
    Load,
    Parked,
    Pause,
    RunLoop,
    Settle,
)
from noetl.pipeline.drive import End, Surroundings, run_pipeline
from noetl.pipeline.frame import Frame
from noetl.playbook.plan import LoopPlan, Pipeline, Plan, Scope
from noetl.ports.commit import Commit
from noetl.ports.session import PartLost
from noetl.tools.frame import within
from noetl.worker.caching import find_kept
from noetl.worker.calling import ReadyTask, call_tool
from noetl.worker.fitting import PartFitting
from noetl.worker.parking import let_go, parked
from noetl.worker.reporting import UnsentReports
from noetl.worker.secrecy import Secrecy
from noetl.worker.turn import follow, note_refused, send

if TYPE_CHECKING:
    from noetl.worker.worker import Worker
    from noetl.worker.workplace import PartWorkplace

NOTED = 2.0
"""Seconds: a longer pause is put into the log, so that everybody sees what is waited for."""

Driven = Generator[Ask, Any, End]


E = TypeVar("E", bound=e.Event)


class PartWork:
    """The work on one part. Subclasses run a plain pipeline, or iterations."""

    asks = False
    """Whether a pipeline of this part, or of a loop inside it, waits for verdicts on writes."""
    may_wait_elsewhere = False
    """Whether the part may be given back while it pauses (TASK-8)."""

    def __init__(self, worker: "Worker", command: Command, plan: Plan, folder: str | None) -> None:
        self.worker = worker
        self.command = command
        self.plan = plan
        self.step = plan.steps[command.step]
        self.folder = folder
        self.reported = 0
        self.events: list[e.Event] = []
        """What happened and is not reported yet."""
        self.committed: Commit | None = None
        self.unsent: UnsentReports | None = None
        self.unsure = False
        """Whether what the last report came to is known with its commit only."""
        self.refused: dict[str, e.TaskDone] = {}
        """Writes that the server refused and whose pipeline was not told yet, by task run."""
        self.bodies: dict[str, Any] = {}
        """Reference key → value, as templates read it."""
        self.places: dict[str, PartWorkplace] = {}
        """Kind → what its tool is lent."""
        self.ready: dict[str, ReadyTask] = {}
        """Label → what all calls of that task have in common."""
        self._looked = 0
        """Events that `barrier` has looked at."""
        self.stopped = False
        """Interrupted: report what is recorded, and no end."""
        self.lost = False
        """Another worker has it: nothing of it is reported any more."""

    @cached_property
    def fitting(self) -> PartFitting:
        """Most parts have nothing large: this is made when one has."""
        return PartFitting(
            self.command, self.plan, self.worker.results, self.bodies, self.worker.unseal
        )

    @cached_property
    def secrecy(self) -> Secrecy:
        """Made when the process knows a secret."""
        return Secrecy(self.worker.sealing, self.bodies)

    def conceal(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """KEY-3, and RES-1 `reference_first`."""
        if KNOWN:
            outcome = self.secrecy.fit(outcome)
        if self.plan.executor.reference_first and outcome["result"] is not None:
            outcome = {**outcome, "result": self.fitting.refer(outcome["result"])}
        return outcome

    def fit(self, event: E, keep: frozenset[str] = frozenset()) -> E:
        """EVT-4, KEY-3. A cheap look first."""
        most = min(INLINE, self.plan.limits.max_payload_bytes)
        small = is_small(event, most)
        if KNOWN and not (small and is_concealed(event)):
            event = self.secrecy.event(event)
            small = is_small(event, most)
        return event if small else self.fitting.event(event, keep)

    # ── what a pipeline sees ─────────────────────────────────────────────────────────────────

    def scope(self, ctx: dict[str, Any], iter_: dict[str, Any]) -> Scope:
        command = self.command
        return {
            "workload": command.workload,
            "ctx": ctx,
            "args": command.args,
            "iter": iter_,
            "execution_id": command.execution_id,
            "$bodies": self.bodies,
        }

    def surroundings(self, *loops: LoopPlan) -> Surroundings:
        """What is the same for all tasks of a pipeline inside these loops, inner first."""
        folded = self.plan.executor.reduce
        settles = bool(folded) or any(loop.mode == "parallel" for loop in loops)
        self.asks = self.asks or settles
        reduce = [pair for loop in loops for pair in loop.reduce.items()]
        keep = frozenset(key for key, how in (*reduce, *folded.items()) if how in LOOKS_INTO)
        return Surroundings(
            plan=self.plan,
            step=self.command.step,
            step_run_id=self.command.step_run_id,
            worker=self.worker.name,
            trace_id=self.command.trace_id,
            now=time.time,
            chance=random.random,
            fit=partial(self.fit, keep=keep) if keep else self.fit,
            conceal=self.conceal,
            loops=loops,
            settles=settles,
            reduced=frozenset(key for key, _ in reduce),
            part=self.command.part,
            due=self.command.due,
            waits=self.command.waits,
        )

    def pipeline(
        self, pipeline: Pipeline, frame: Frame, scope: Scope, prefix: str, around: Surroundings
    ) -> Driven:
        return run_pipeline(pipeline, frame, scope, prefix, around, self.events)

    # ── driving ──────────────────────────────────────────────────────────────────────────────

    async def drive(
        self, driven: Driven, ask: Ask | None = None, begun: list[e.Event] | None = None
    ) -> End:
        """Answer what the pipeline asks until it ends; what has `begun` is told with an answer."""
        answer: Any = None
        try:
            if ask is None:
                ask = driven.send(None)
            while True:
                answer = await ANSWER[type(ask)](self, ask)
                if begun:
                    self.events += begun
                    begun.clear()
                ask = driven.send(answer)
        except StopIteration as stop:
            end: End = stop.value
            return end

    async def _call(self, ask: CallTool) -> Any:
        if ask.task.effect and (self.events or self.committed is not None):
            await self.barrier()
        return await call_tool(self, ask)

    async def _pause(self, ask: Pause) -> None:
        """A recorded one stands still while the execution is paused, as every clock (WAIT-6)."""
        seconds, noted, moved = ask.seconds, ask.seconds > NOTED, 0
        if noted:
            self.events.append(
                e.TaskSuspended(
                    step=self.command.step,
                    step_run_id=self.command.step_run_id,
                    task_run_id=ask.task_run_id,
                    task=ask.task,
                    part=self.command.part,
                    reason=ask.reason,
                    due=int((time.time() + seconds) * 1000),
                    attempt=ask.attempt,
                )
            )
            self.report()
            if seconds > self.worker.patience and self.may_wait_elsewhere:
                await self.barrier()
                self.worker.session.hand_back(self.command)
                raise PartLost(self.command.step_run_id)
        await self.worker.sleep(seconds)
        how_far = partial(self.worker.session.moved, self.command, ask.task_run_id)
        while noted and (now := await how_far()) > moved:
            await self.worker.sleep((now - moved) / 1000)
            moved = now

    async def _await(self, ask: AwaitAnswer) -> Any:
        if self.worker.cans_waits and ask.call is not None:
            return await call_tool(self, ask.call)
        raise parked(self, ask)

    async def _settle(self, ask: Settle) -> e.TaskDone:
        """LOOP-5: the server says whether the write stands."""
        # Another iteration of this part may have reported it already.
        self.report()
        if self.unsure and self.committed is not None:
            await self.committed
        return self.refused.pop(ask.done.task_run_id, ask.done)

    async def _load(self, ask: Load) -> str | None:
        try:
            await self.fitting.load(ask.reference)
        except BodyLost as lost:
            return str(lost)
        return None

    async def _breathe(self, _: Breathe) -> None:
        self.report()
        await self.worker.breathe(self)

    async def _nested(self, ask: RunLoop) -> Any:
        from noetl.worker.nested import run_nested

        return await run_nested(self, ask)

    # ── reporting ────────────────────────────────────────────────────────────────────────────

    def report(self, *last: e.Event) -> None:
        """Tell the server what happened since the last report, and learn what it recorded."""
        events = self.unreported(*last)
        if events:
            follow(self, send(self, events))

    def unreported(self, *last: e.Event) -> list[e.Event]:
        """What happened since the last report, to be sent now; what waits for its bodies is not."""
        events = [*self.events, *last]
        if not events:
            return events
        if self.lost:
            raise PartLost(self.command.step_run_id)
        self.events.clear()
        self._looked = 0
        if KNOWN:
            events = self.secrecy.report(events)
        bodies = self.fitting.take_bodies() if "fitting" in self.__dict__ else []
        if bodies or self.unsent:
            self.unsent = self.unsent or UnsentReports(self)
            self.committed, self.unsure = self.unsent.add(events, bodies), True
            if self.asks:
                self.committed.add_done_callback(lambda commit: note_refused(self, commit.refused))
            return []
        return events

    async def barrier(self) -> None:
        """TASK-9: recorded outcomes are committed before the next task with an effect starts."""
        # Iterations of a part share the list: what one has looked at, the next need not.
        looked, self._looked = self._looked, len(self.events)
        if any(type(event) is e.TaskDone for event in islice(self.events, looked, None)):
            self.report()
        # Not taken away: other iterations of the part wait for the same commit.
        if self.committed is not None:
            await self.committed

    def spawn(self, work: Coroutine[Any, Any, None], unbegun: Callable[[], None]) -> None:
        self.worker.spawn(self, work, unbegun)


def is_concealed(event: e.Event) -> bool:
    """
    Whether all of it that the pipeline reads on is what `conceal` gave: then it is early enough to
    look for secrets in the rest of it when it is reported, together with the others.
    """
    return (
        type(event) is e.TaskDone
        and not event.set_ctx
        and not event.set_iter
        and event.set_prev is UNSET
        and event.error is None
    )


ANSWER: dict[type[Any], Callable[[PartWork, Any], Awaitable[Any]]] = {
    CallTool: PartWork._call,
    Pause: PartWork._pause,
    Settle: PartWork._settle,
    Load: PartWork._load,
    RunLoop: PartWork._nested,
    AwaitAnswer: PartWork._await,
    FindKept: find_kept,
    Breathe: PartWork._breathe,
}


class PlainWork(PartWork):
    """A step without a loop: one pipeline, from where its frame stands."""

    may_wait_elsewhere = True

    def begin(self) -> None:
        """Run as far as it goes without waiting; the rest is a task of its own."""
        command = self.command
        frame = command.frame
        assert frame is not None, "a part without a loop has a frame"
        if not command.resumed:
            self.events.append(e.StepStarted(step=command.step, step_run_id=command.step_run_id))
        around = self.surroundings()
        scope = self.scope(command.ctx, frame.iter)
        prefix = command.step_run_id.partition(".")[0]
        driven = self.pipeline(self.step.pipeline, frame, scope, prefix, around)
        try:
            ask = driven.send(None)
        except StopIteration as stop:
            self._end(stop.value)
        else:
            if isinstance(ask, AwaitAnswer) and not self.worker.cans_waits:
                self._park(parked(self, ask))
            else:
                self.spawn(self._go_on(driven, ask), self._cancelled)

    def _park(self, waits: Parked) -> None:
        let_go(self, waits)
        self.report()

    async def _go_on(self, driven: Driven, ask: Ask) -> None:
        try:
            async with within(self.command.left):
                end = await self.drive(driven, ask)
        except Parked as waits:
            self._park(waits)
            return
        except TimeoutError:
            end = End(None, too_long(self.step.name, self.step.timeout or 0.0))
        except asyncio.CancelledError:
            if self.stopped:
                self.report()
                raise
            end = End(None, CANCELLED)
        self._end(end)

    def _cancelled(self) -> None:
        self._end(End(None, CANCELLED))

    def _end(self, end: End) -> None:
        step, run_id = self.command.step, self.command.step_run_id
        if end.error is not None:
            self.report(e.StepFailed(error=end.error, step=step, step_run_id=run_id))
        else:
            self.report(e.StepDone(result=end.result, step=step, step_run_id=run_id))


CANCELLED = make_error("cancelled", "the execution was cancelled")
