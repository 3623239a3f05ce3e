"""A loop inside a task (LOOP-7): run by the worker that runs the task."""

import asyncio
from typing import TYPE_CHECKING, Any

from noetl.control.folding import folded_by, number_of, passed_on
from noetl.control.reducers import MISSING, fold, owned
from noetl.errors import BodyLost, NeedsBody, TemplateFailed
from noetl.messages import events as e
from noetl.messages.outcome import Outcome, failed
from noetl.messages.reference import Reference
from noetl.pipeline.asks import Parked, RunLoop
from noetl.pipeline.drive import BREATH, End, run_pipeline
from noetl.pipeline.frame import Frame, Iteration, Nested
from noetl.pipeline.policy import template_error
from noetl.playbook.plan import InnerPlan, Scope

if TYPE_CHECKING:
    from noetl.worker.part import PartWork


async def run_nested(part: "PartWork", ask: RunLoop) -> Outcome:
    """Run the inner pipeline for each element; the result is the list of results."""
    inner = ask.task.inner
    assert inner is not None, "an iterator task has an inner pipeline"
    nested = ask.frame.inner
    if nested is None:
        try:
            items = await collection(part, inner, ask.scope)
        except TemplateFailed as fault:
            error = template_error(fault, f"`in` of task '{ask.task.label}'")
            return Outcome(status="error", error=error)
        except BodyLost as lost:
            return failed("result", str(lost))
        if not isinstance(items, list | tuple):
            return failed("loop", f"`in` must evaluate to a list, got {type(items).__name__}")
        nested = begin(part, ask, inner, list(items))
    return await NestedWork(part, ask, inner, nested).run()


async def collection(part: "PartWork", inner: InnerPlan, scope: Scope) -> Any:
    while True:
        try:
            items = inner.loop.items(scope)
        except NeedsBody as need:
            await part.fitting.load(need.reference)
            continue
        return await part.fitting.load(items) if isinstance(items, Reference) else items


def begin(part: "PartWork", ask: RunLoop, inner: InnerPlan, items: list[Any]) -> Nested:
    command = part.command
    started = e.LoopStarted(
        step=command.step,
        step_run_id=command.step_run_id,
        total=len(items),
        items=items,
        mode=inner.loop.mode,
        part=command.part,
        parent_id=ask.task_run_id,
    )
    part.events.append(part.fit(started))
    return Nested(total=len(items), items=items, active={}, results={}, errors={}, reduced={})


class NestedWork:
    """The iterations of one nested loop."""

    def __init__(self, part: "PartWork", ask: RunLoop, inner: InnerPlan, nested: Nested) -> None:
        self.part = part
        self.ask = ask
        self.inner = inner
        self.nested = nested
        self.attempt = ask.frame.attempt
        parallel = inner.loop.mode == "parallel"
        self.ctx = nested.seen_in(ask.scope["ctx"]) if parallel else None
        """What parallel iterations see: ctx as it was when the loop began (SCOPE-4)."""
        self.fresh = part.command.rules >= 2
        """Whether what loops around reduce, too, is theirs to fold (LOOP-5)."""
        self.around = part.surroundings(inner.loop, *ask.loops)

    async def run(self) -> Outcome:
        nested, loop = self.nested, self.inner.loop
        if isinstance(nested.items, Reference):
            nested.items = await self.part.fitting.load(nested.items)
        todo = iter(
            [i for i in range(nested.total) if i not in nested.results and i not in nested.errors]
        )

        waits = False

        async def run_some() -> None:
            nonlocal waits
            for index in todo:
                if nested.errors and loop.on_failure == "stop" and index not in nested.active:
                    return
                try:
                    await self.run_one(index)
                except Parked:  # in flight for `max_in_flight`: its place is not given on
                    waits = True
                    return
                if len(self.part.events) >= BREATH:
                    self.part.report()
                    await self.part.worker.breathe(self.part)

        if loop.in_flight == 1:
            await run_some()
        else:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(loop.in_flight, nested.total)):
                    group.create_task(run_some())
        if waits:  # all that is in flight
            raise Parked(self.ask.task.label, self.ask.task_run_id)
        return self.outcome()

    async def run_one(self, index: int) -> None:
        nested, part, scope = self.nested, self.part, self.ask.scope
        iteration_id = f"{self.ask.task_run_id}.{number_of(index, self.attempt)}"
        ids: dict[str, Any] = {
            "step": part.command.step,
            "step_run_id": part.command.step_run_id,
            "index": index,
            "iteration_id": iteration_id,
            "part": part.command.part,
            "parent_id": self.ask.task_run_id,
        }
        begun = nested.active.get(index)
        if begun is None:
            begun = nested.active[index] = Iteration(frame=Frame(), writes=[], ctx={})
            part.events.append(e.IterationStarted(**ids))
        around = scope["ctx"] if self.ctx is None else self.ctx
        own = {
            **scope,
            "ctx": {**around, **begun.ctx},
            "iter": {
                self.inner.loop.iterator: nested.items[index],
                "index": index,
                "parent": scope["iter"],
                **begun.frame.iter,
            },
        }
        driven = run_pipeline(
            self.inner.pipeline,
            begun.frame,
            own,
            iteration_id,
            self.around,
            part.events,
            begun.writes,
        )
        end = await part.drive(driven)
        self.take(index, begun, end, changes(around, own["ctx"]))
        event = e.IterationFailed if end.error is not None else e.IterationDone
        part.events.append(event(**ids, **ending(end)))

    def take(self, index: int, begun: Iteration, end: End, wrote: dict[str, Any]) -> None:
        nested = self.nested
        nested.active.pop(index)
        if end.error is not None:
            nested.errors[index] = end.error
        else:
            nested.results[index] = end.result
            nested.reduced[index] = begun.writes
        # What an inner iteration wrote is the run's own write: the rest of it sees it (SCOPE-4).
        self.ask.scope["ctx"] = {**self.ask.scope["ctx"], **wrote}

    def outcome(self) -> Outcome:
        nested, loop, command = self.nested, self.inner.loop, self.part.command
        results = [nested.results.get(index) for index in range(nested.total)]
        counts = {
            "total": nested.total,
            "done": len(nested.results),
            "failed": len(nested.errors),
        }
        self.part.events.append(
            e.LoopDone(
                step=command.step,
                step_run_id=command.step_run_id,
                total=counts["total"],
                done=counts["done"],
                failed=counts["failed"],
                part=command.part,
                parent_id=self.ask.task_run_id,
            )
        )
        if nested.errors and loop.on_failure == "stop":
            lowest = min(nested.errors)
            cause = nested.errors[lowest]
            message = f"iteration {lowest} failed: {cause.get('message', '')}"
            return failed("loop", message, block=counts, index=lowest, cause=cause)
        passed = list(passed_on(nested, loop, self.ask.loops)) if self.fresh else []
        try:
            writes = self.reduced() or None
            return Outcome(status="ok", result=results, block=counts, writes=writes, passed=passed)
        except TypeError as fault:
            return failed("loop", f"a reducer refused a write: {fault}", block=counts)

    def reduced(self) -> dict[str, Any]:
        """
        LOOP-5: what the reducers come to, in index order, onto what ctx had; onto nothing where a
        loop around reduces the key, which adds what ctx had itself.
        """
        loop, ctx = self.inner.loop, self.ask.scope["ctx"]
        around = self.ask.loops if self.fresh else ()
        mine = folded_by(loop, around)
        outer = {key for plan in around for key in plan.reduce}
        reduced = {key: owned(ctx[key]) for key in mine - outer if key in ctx}
        written: set[str] = set()
        for index in sorted(self.nested.reduced):
            writes = [write for write in self.nested.reduced[index] if write[0] in mine]
            fold(loop.reduce, reduced, writes)
            written.update(key for key, _ in writes)
        # What nobody wrote stays what others made of it.
        return {key: reduced[key] for key in loop.reduce if key in written}


def ending(end: End) -> dict[str, Any]:
    return {"error": end.error} if end.error is not None else {"result": end.result}


def changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The ctx keys that an iteration wrote: others may have written since it began."""
    return {key: value for key, value in after.items() if before.get(key, MISSING) is not value}
