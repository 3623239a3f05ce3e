"""Iterations at work: one after the other, or many at once (LOOP)."""

import asyncio
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from noetl.control.dispatch import Share
from noetl.control.timing import too_long
from noetl.errors import BodyLost
from noetl.messages import events as e
from noetl.messages.outcome import make_error
from noetl.messages.reference import Reference
from noetl.pipeline.asks import Ask, AwaitAnswer, CallTool, Parked
from noetl.pipeline.drive import End
from noetl.pipeline.frame import Frame
from noetl.playbook.plan import LoopPlan
from noetl.worker.parking import let_go, parked
from noetl.worker.part import CANCELLED, Driven, PartWork

BREATH = 64
"""Iterations without an effect that run before others get a turn."""


BEGUN = frozenset((e.StepStarted, e.IterationStarted, e.TaskStarted))
"""
What has only begun is reported with its end, or after a moment (`worker.NEWS`): a row and a commit
of its own would stand before the first call (TASK-9), and most calls are over sooner.
"""


class LoopWork(PartWork):
    """The iterations of one part of a loop."""

    loop: LoopPlan
    share: Share
    items: Any
    ctx: dict[str, Any]
    prefix: str
    """With which the ids of its iterations begin (EVT-0)."""
    begun: dict[int, list[e.Event]]
    """What is told of iterations with their end: then the server need not follow them."""

    def begin(self) -> None:
        """Start at once where the collection is at hand."""
        assert self.step.loop is not None, "only a step with a loop has iterations"
        self.loop = self.step.loop
        self.prefix = self.command.step_run_id.partition(".")[0]
        self.begun = {}
        if not self.command.resumed:
            self.events.append(
                e.StepStarted(step=self.command.step, step_run_id=self.command.step_run_id)
            )
        share = self.command.iterations
        assert share is not None, "a part of a loop has a share of it"
        self.share = share
        self.ctx = self.command.ctx
        self.around = self.surroundings(self.loop)
        if isinstance(share.items, Reference) or self.loop.exec == "local":
            self.spawn(self._run(), partial(self._fail, CANCELLED))
        else:
            self.items = share.items
            self.start_all()

    async def _run(self) -> None:
        items = self.share.items
        if isinstance(items, Reference):
            try:
                items = await self.worker.bodies.load(items)  # kept: parts share it
            except BodyLost as lost:
                said = f"step '{self.step.name}' has no collection: {lost}"
                self._fail(make_error("result", said))
                return
        self.items = items
        if self.loop.exec == "distributed":
            self.start_all()
            return
        try:
            async with asyncio.timeout(self.command.left):
                await self.run_local()
        except Parked as waits:  # one after the other: nothing else of the loop can run
            let_go(self, waits)
            self.report()
        except TimeoutError:
            self._fail(too_long(self.step.name, self.step.timeout or 0.0))
        except asyncio.CancelledError:
            if self.stopped:
                self.report()
                raise
            self._fail(CANCELLED)

    def _fail(self, error: dict[str, Any]) -> None:
        command = self.command
        self.report(e.StepFailed(step=command.step, step_run_id=command.step_run_id, error=error))

    def report(self, *last: e.Event) -> None:
        """Tell what has happened, and what has only begun."""
        self.tell_begun()
        super().report(*last)

    def tell_begun(self) -> None:
        for begun in self.begun.values():
            self.events += begun
            begun.clear()

    # ── one iteration ────────────────────────────────────────────────────────────────────────

    def pending(self) -> Iterator[int]:
        share = self.share
        if share.failed and self.loop.exec == "local" and self.loop.on_failure == "stop":
            return iter(sorted(share.active))  # LOOP-4: what is in flight runs to its end
        return (index for index in range(share.first, share.last) if index not in share.ended)

    def start(self, index: int) -> tuple[str, Driven, dict[str, Any]]:
        """The driven pipeline of an iteration, and its scope."""
        command = self.command
        iteration_id = f"{self.prefix}.{index + 1}"
        begun = self.share.active.get(index)
        ctx, bound = self.ctx, {self.loop.iterator: self.items[index - self.share.offset]}
        bound["index"] = index
        if begun is None:
            frame = Frame()
            self.events.append(
                e.IterationStarted(
                    step=command.step,
                    step_run_id=command.step_run_id,
                    index=index,
                    iteration_id=iteration_id,
                    part=command.part,
                )
            )
        else:
            frame = begun.frame
            bound.update(frame.iter)
            ctx = {**ctx, **begun.ctx}
        scope = self.scope(ctx, bound)
        driven = self.pipeline(self.step.pipeline, frame, scope, iteration_id, self.around)
        return iteration_id, driven, scope

    def ended(self, index: int, iteration_id: str, end: End) -> None:
        command = self.command
        if end.error is None:
            done = e.IterationDone(
                step=command.step,
                step_run_id=command.step_run_id,
                index=index,
                iteration_id=iteration_id,
                part=command.part,
                result=end.result,
            )
            self.events.append(done)
            return
        failed = e.IterationFailed(
            step=command.step,
            step_run_id=command.step_run_id,
            index=index,
            iteration_id=iteration_id,
            part=command.part,
            error=end.error,
        )
        self.events.append(failed)

    # ── distributed: the server hands out ranges ─────────────────────────────────────────────

    def start_all(self) -> None:
        """Start every iteration of the part; those that wait for nothing are over at once."""
        for index in self.pending():
            before = len(self.events)
            iteration_id, driven, _ = self.start(index)
            try:
                ask = driven.send(None)
            except StopIteration as stop:
                self.ended(index, iteration_id, stop.value)
                continue
            if isinstance(ask, CallTool):
                self.begun[index] = self.events[before:]
                del self.events[before:]
            if isinstance(ask, AwaitAnswer) and not self.worker.cans_waits:
                let_go(self, parked(self, ask))
            else:
                work = self._finish(index, iteration_id, driven, ask)
                self.spawn(work, partial(self._over, index, iteration_id, End(None, CANCELLED)))
        if any(type(event) not in BEGUN for event in self.events):
            self.report()

    async def _finish(self, index: int, iteration_id: str, driven: Driven, ask: Ask) -> None:
        try:
            end = await self.drive(driven, ask, self.begun.get(index))
        except Parked as waits:
            let_go(self, waits)
            self.worker.turn.report_soon(self)
            return
        except asyncio.CancelledError:
            if self.stopped:
                self.report()
                raise
            end = End(None, CANCELLED)
        self._over(index, iteration_id, end)

    def _over(self, index: int, iteration_id: str, end: End) -> None:
        if end.error is not None:  # LOOP-4: what had begun before is told before
            self.tell_begun()
        self.begun.pop(index, None)
        self.ended(index, iteration_id, end)
        self.worker.turn.report_soon(self)

    # ── local: this worker runs the loop ─────────────────────────────────────────────────────

    async def run_local(self) -> None:
        await (self._one_by_one() if self.loop.mode == "sequential" else self._at_once())
        command = self.command
        done = e.LoopDone(
            step=command.step,
            step_run_id=command.step_run_id,
            part=command.part,
            total=self.share.total,
            done=0,
        )
        self.report(done)

    async def _one_by_one(self) -> None:
        """Sequential: a later iteration sees what earlier ones wrote (SCOPE-4)."""
        run_ahead = self.worker.run_ahead and not self.step.pipeline.effect
        for count, index in enumerate(self.pending(), 1):
            iteration_id, driven, scope = self.start(index)
            try:
                ask = driven.send(None)
            except StopIteration as stop:
                end: End = stop.value
            else:
                end = await self.drive(driven, ask)
            self.ctx = scope["ctx"]
            self.ended(index, iteration_id, end)
            breath = count % BREATH == 0  # a commit that was made at once gives nobody a turn
            if not run_ahead or breath:
                self.report()
            committed = self.committed
            if not run_ahead and committed is not None and not committed.is_kept():
                await committed
            if breath:
                await (self.worker.breathe(self) if run_ahead else asyncio.sleep(0))
            if end.error is not None and self.loop.on_failure == "stop":
                return

    async def _at_once(self) -> None:
        """Parallel on one worker: `max_in_flight` at a time (LOOP-1)."""
        todo = self.pending()
        failed = False
        window = Window(self.share.ended, self.share.first, self.loop.window)

        async def run_some() -> None:
            nonlocal failed
            for index in todo:
                await window.room_for(index)
                if failed and self.loop.on_failure == "stop":
                    return
                iteration_id, driven, _ = self.start(index)
                end = await self.drive(driven)
                self.ended(index, iteration_id, end)
                self.report()
                failed = failed or end.error is not None
                window.close(index)
                await self.worker.breathe(self)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self.loop.in_flight, self.share.last - self.share.first)):
                group.create_task(run_some())


class Window:
    """LOOP-9: how far iterations may run ahead of the lowest one that has not ended."""

    def __init__(self, ended: Iterable[int], low: int, width: int) -> None:
        self._ended = set(ended)
        self._low = low
        self._width = width
        self._moved = asyncio.Event()
        self._advance()

    async def room_for(self, index: int) -> None:
        while index >= self._low + self._width:
            self._moved.clear()
            await self._moved.wait()

    def close(self, index: int) -> None:
        """An iteration has ended."""
        self._ended.add(index)
        self._advance()
        self._moved.set()

    def _advance(self) -> None:
        while self._low in self._ended:
            self._ended.discard(self._low)
            self._low += 1
