"""
How a run's position follows its reports: frames, iterations, folded results.

Part of the fold: like `evolve`, it reads only events, state and plan.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from noetl.control.execution import Ended, Execution, LoopRun, Part, Pile, Run, Tally
from noetl.control.reducers import LOOKS_INTO, PILED, describe, fold, owned
from noetl.messages import events as e
from noetl.messages.codec import encode, reference_to
from noetl.messages.outcome import make_error
from noetl.messages.places import index_in
from noetl.messages.reference import Reference
from noetl.messages.size import rough_size, surely_fits
from noetl.pipeline.advance import advance
from noetl.pipeline.frame import Frame, Iteration, Nested
from noetl.playbook.model import Reducer
from noetl.playbook.plan import LoopPlan, Pipeline, StepPlan

CHUNK = 10_000
"""Results that are kept before they are moved out of the state (LOOP-9)."""


SEVERAL = -1
"""Whose write it is when two iterations wrote the same value: nobody's to change (LOOP-5)."""


class Around(msgspec.Struct):
    """An iteration around a task: its loop, and its own record."""

    index: int
    iteration: Iteration
    writes: dict[str, tuple[int, Any]]
    plan: LoopPlan
    before: dict[str, Any] | None = None
    """Of a loop inside a task: what its writes have replaced."""


class Spot(msgspec.Struct, frozen=True):
    """Where a task run stands: frame, pipeline, and the iterations around it, inner first."""

    frame: Frame
    pipeline: Pipeline
    around: tuple[Around, ...]


def part_of(event: e.TokenEnqueued) -> Part:
    return Part(
        part=event.part, first=event.first, last=event.last, left=max(1, event.last - event.first)
    )


def begin_run(
    execution: Execution,
    event: e.StepScheduled,
    step: StepPlan,
    args: dict[str, Any],
    rounds: dict[str, int],
) -> Run:
    """The run that a step was scheduled for."""
    execution.runs[event.step_run_id] = run = Run(
        step_run_id=event.step_run_id,
        step=event.step,
        args=args,
        ctx=execution.ctx,
        rounds=rounds,
        frame=Frame() if step.loop is None else None,
    )
    execution.step_runs += 1
    tally = execution.tallies.get(event.step)
    if tally is None:
        execution.tallies[event.step] = tally = Tally()
    tally.runs += 1
    tally.status = "running"
    return run


def locate(run: Run, task_run_id: str, step: StepPlan) -> Spot:
    """Read the way to a task run from its id: `{run}.{iteration}.{task}…` (EVT-0)."""
    numbers = task_run_id.split(".")
    around: tuple[Around, ...] = ()
    if run.loop is None:
        assert run.frame is not None, "a run without a loop has a frame"
        frame, rest = run.frame, numbers[2:]
    else:
        assert step.loop is not None, "only a step with a loop has iterations"
        index = int(numbers[1]) - 1
        iteration = run.loop.active[index]
        around = (Around(index, iteration, run.loop.writes, step.loop),)
        frame, rest = iteration.frame, numbers[3:]
    pipeline = step.pipeline
    while rest:
        inner = pipeline.tasks[frame.pc].inner
        assert inner is not None, "only an iterator task has iterations"
        assert frame.inner is not None, "the loop has started"
        index = index_in(rest[0])
        iteration = frame.inner.active[index]
        nested = frame.inner
        around = (Around(index, iteration, nested.writes, inner.loop, nested.before), *around)
        frame, pipeline, rest = iteration.frame, inner.pipeline, rest[2:]
    return Spot(frame, pipeline, around)


def number_of(index: int, attempt: int) -> str:
    """The part of an id that names a nested iteration: another one in each attempt (EVT-0)."""
    return f"{index + 1}" if attempt == 1 else f"{index + 1}r{attempt}"


def take_task_done(
    execution: Execution, run: Run, event: e.TaskDone, step: StepPlan, folded: Mapping[str, Reducer]
) -> None:
    """Move the frame of a task run, and remember what it wrote (LOOP-5)."""
    if run.frame is not None and run.frame.inner is None:  # no loop around it: the common case
        advance(run.frame, event, step.pipeline)
        return
    way = event.task_run_id.split(".")
    if run.loop is not None and len(way) == 3 and not event.set_ctx:
        frame = run.loop.active[int(way[1]) - 1].frame
        if frame.inner is None:  # no loop inside it, and nothing written: as common
            advance(frame, event, step.pipeline)
            return
    spot = locate(run, event.task_run_id, step)
    nested = spot.frame.inner
    if nested is not None and event.outcome["status"] == "ok":
        execution.errors_passed += len(nested.errors)
    if nested is not None and event.outcome["status"] == "ok" and execution.rules >= 2:
        inner = spot.pipeline.tasks[spot.frame.pc].inner
        assert inner is not None, "only an iterator task has iterations"
        plans = [place.plan for place in spot.around]
        for key, value in passed_on(nested, inner.loop, plans):
            remember(execution, run, spot.around, key, value)
    if event.set_ctx and spot.around:
        for key, value in event.set_ctx.items():
            if key not in folded:  # else it is the execution's (SCOPE-6)
                remember(execution, run, spot.around, key, value)
    advance(spot.frame, event, spot.pipeline)


def passed_on(
    nested: Nested, loop: LoopPlan, around: Sequence[LoopPlan]
) -> Iterator[tuple[str, Any]]:
    """
    LOOP-5: the writes, in index order, that a nested loop does not fold: they are those of a
    loop around it, which counts each of them once.
    """
    mine = folded_by(loop, around)
    for index in sorted(nested.reduced):
        yield from (write for write in nested.reduced[index] if write[0] not in mine)


def folded_by(loop: LoopPlan, around: Sequence[LoopPlan]) -> frozenset[str]:
    """The keys that a loop folds itself: not those that a loop around reduces in the same way."""
    nearest = {key: plan.reduce[key] for plan in reversed(around) for key in plan.reduce}
    return frozenset(key for key, how in loop.reduce.items() if nearest.get(key) != how)


def remember(
    execution: Execution, run: Run, around: tuple[Around, ...], key: str, value: Any
) -> None:
    """
    A write that some loop around reduces is kept with its iteration, and counts when that ends
    well; by rules 1 it went to the loop at once. Any other goes to ctx, under its owner.
    """
    for place in around:
        if key in place.plan.reduce:
            kept = around[0] if execution.rules >= 2 else place
            kept.iteration.writes.append((key, value))
            return
    if execution.rules >= 5:  # snapshots of older logs do not have it
        _keep_before(run, around, key)
    for place in around:
        if place.plan.mode == "parallel":
            first = place.writes.get(key, (place.index, value))
            several = first[0] != place.index and execution.rules >= 5
            place.writes[key] = (SEVERAL if several else place.index, value)
            place.iteration.ctx[key] = value


def _keep_before(run: Run, around: tuple[Around, ...], key: str) -> None:
    """What parallel iterations of nested loops see, whoever goes on with them (SCOPE-4)."""
    for depth, place in enumerate(around):
        if place.before is None or place.plan.mode != "parallel" or key in place.writes:
            continue
        outside = [other.iteration.ctx for other in around[depth + 1 :]]
        for ctx in (*outside, run.ctx):
            if key in ctx:
                place.before[key] = ctx[key]
                break


def plain_writes(around: tuple[Around, ...], writes: dict[str, Any]) -> dict[str, Any]:
    """The writes that reach ctx at once: those that no loop around reduces."""
    if not around:
        return writes
    reduced = {key for place in around for key in place.plan.reduce}
    return {key: value for key, value in writes.items() if key not in reduced}


def conflict(around: tuple[Around, ...], writes: dict[str, Any]) -> tuple[str, int, int] | None:
    """LOOP-5: the first key that another iteration has written otherwise; and both indexes."""
    for place in around:
        if place.plan.mode != "parallel":
            continue
        for key, value in writes.items():
            first = place.writes.get(key)
            if first is not None and first[0] != place.index and first[1] != value:
                return key, place.index, first[0]
    return None


def length_of(items: Any) -> int | None:
    """A list's length, also of one that lies outside the log; None for what is no list."""
    if isinstance(items, Reference):
        hint = items.schema_hint or ""
        known = hint.startswith(("list[", "chunks["))
        return int(hint[hint.index("[") + 1 : hint.index("]")]) if known else None
    return len(items) if isinstance(items, list | tuple) else None


def begin_loop(execution: Execution, run: Run, event: e.LoopStarted, step: StepPlan) -> None:
    if event.parent_id is not None:
        spot = locate(run, event.parent_id, step)
        spot.frame.inner = Nested(total=event.total, items=event.items)
        return
    assert step.loop is not None, "only a step with a loop starts one"
    reduce = step.loop.reduce
    run.loop = loop = LoopRun(
        total=event.total, items=event.items, mode=event.mode, exec=event.exec
    )
    for key, value in ((key, execution.ctx[key]) for key in reduce if key in execution.ctx):
        length = length_of(value) if reduce[key] in PILED and execution.rules >= 2 else None
        if length is not None:
            loop.piles[key] = Pile()
            pile_all(execution, loop.piles[key], value, length)
        elif reduce[key] in LOOKS_INTO and isinstance(value, Reference) and execution.rules >= 2:
            loop.bases[key] = value
        else:
            loop.reduced[key] = owned(value)


def begin_iteration(run: Run, event: e.IterationStarted, step: StepPlan) -> None:
    if event.parent_id is not None:
        nested = locate(run, event.parent_id, step).frame.inner
        assert nested is not None, "the loop has started"
        nested.active[event.index] = Iteration(frame=Frame())
        nested.started = max(nested.started, event.index + 1)
        return
    assert run.loop is not None, "the loop has started"
    run.loop.active[event.index] = Iteration(frame=Frame())


def end_iteration(
    execution: Execution, run: Run, event: e.IterationDone | e.IterationFailed, step: StepPlan
) -> None:
    if event.parent_id is not None:
        _end_nested(locate(run, event.parent_id, step).frame, event)
        return
    loop = run.loop
    assert loop is not None, "the loop has started"
    assert step.loop is not None, "only a step with a loop starts one"
    iteration = loop.active.pop(event.index)
    if isinstance(event, e.IterationDone):
        loop.done += 1
        ended = Ended(event.result, None, iteration.writes)
    else:
        loop.failed += 1
        ended = Ended(None, event.error)
        if loop.first_failed is None or event.index < loop.first_failed[0]:
            loop.first_failed = (event.index, event.error)
    loop.ended[event.index] = ended
    if loop.exec == "distributed":
        _shorten(run, event.part)
    _fold_ended(execution, loop, step.loop)


def end_whole(execution: Execution, run: Run, event: e.IterationDone, step: StepPlan) -> None:
    """An iteration that ended well and wrote nothing, whose frame was not followed."""
    loop = run.loop
    assert loop is not None, "the loop has started"
    assert step.loop is not None, "only a step with a loop starts one"
    loop.active.pop(event.index, None)
    loop.done += 1
    if event.index == loop.low:
        pile_up(execution, loop.results, event.result)
        loop.low += 1
    else:
        loop.ended[event.index] = Ended(event.result)
    if loop.exec == "distributed":
        _shorten(run, event.part)
    if loop.ended:
        _fold_ended(execution, loop, step.loop)


def _end_nested(frame: Frame, event: e.IterationDone | e.IterationFailed) -> None:
    nested = frame.inner
    assert nested is not None, "the loop has started"
    iteration = nested.active.pop(event.index)
    if isinstance(event, e.IterationDone):
        nested.results[event.index] = event.result
        nested.reduced[event.index] = iteration.writes
    else:
        nested.errors[event.index] = event.error


def _shorten(run: Run, number: int) -> None:
    part = run.parts[number]
    part.left -= 1
    if part.left == 0:
        del run.parts[number]


def _fold_ended(execution: Execution, loop: LoopRun, plan: LoopPlan) -> None:
    """Fold what has ended in index order, so that the order of completion does not matter."""
    while loop.low in loop.ended:
        ended = loop.ended.pop(loop.low)
        if ended.writes:
            ended.error = _reduce(execution, loop, plan, ended)
        pile_up(execution, loop.results, None if ended.error else ended.result)
        if ended.error is not None:
            pile_up(execution, loop.errors, {"index": loop.low, "error": ended.error})
        loop.low += 1


def fold_rest(execution: Execution, loop: LoopRun, plan: LoopPlan) -> None:
    """
    Of a loop that is cut short, what ended behind an iteration that did not end counts as well
    (LOOP-5); the one that did not end has no result (LOOP-6). Before rules 5 it was left out.
    """
    if execution.rules < 5 or not loop.ended:
        return
    for index in range(loop.low, max(loop.ended)):
        loop.ended.setdefault(index, Ended())
    _fold_ended(execution, loop, plan)


def _reduce(
    execution: Execution, loop: LoopRun, plan: LoopPlan, ended: Ended
) -> dict[str, Any] | None:
    """A write that its reducer cannot take fails the iteration that made it."""
    piled: list[tuple[str, Any, int]] = []
    plain = ended.writes
    try:
        if execution.rules >= 2:
            piled = [
                (key, value, taken(plan.reduce[key], value))
                for key, value in ended.writes
                if plan.reduce[key] in PILED and key not in loop.reduced
            ]
            plain = [pair for pair in ended.writes if pair[0] not in {key for key, *_ in piled}]
        fold(plan.reduce, loop.reduced, plain)
    except TypeError as fault:
        message = f"a reducer refused a write: {fault}"
        error = make_error("loop", message)
        loop.done, loop.failed = loop.done - 1, loop.failed + 1
        if loop.first_failed is None or loop.low < loop.first_failed[0]:
            loop.first_failed = (loop.low, error)
        return error
    loop.reduces += [key for key in dict(ended.writes) if key not in loop.reduces]
    for key, value, length in piled:
        pile = loop.piles.setdefault(key, Pile())
        if plan.reduce[key] == "append":
            pile_up(execution, pile, value)
        else:
            pile_all(execution, pile, value, length)
    return None


def taken(how: Reducer, value: Any) -> int:
    """How many values a write adds; raises TypeError where `extend` is given no list."""
    length = 1 if how == "append" else length_of(value)
    if length is None:
        raise TypeError(f"`{how}` takes a list, got {describe(value)}")
    return length


def pile_all(execution: Execution, pile: Pile, values: Any, length: int) -> None:
    """Add the values of a list; one that lies outside becomes a chunk as it is."""
    if not isinstance(values, Reference):
        for value in values:
            pile_up(execution, pile, value)
        return
    if pile.values:
        fold_away(execution, pile)
    pile.chunks.append(values)
    pile.count += length


def pile_up(execution: Execution, pile: Pile, value: Any) -> None:
    pile.values.append(value)
    pile.count += 1
    if value is not None:
        pile.weight += rough_size(value)
    if len(pile.values) >= CHUNK or pile.weight >= execution.largest:
        fold_away(execution, pile)


def fold_away(execution: Execution, pile: Pile) -> None:
    """Move what was folded out of the state, into a body of its own (LOOP-9)."""
    body = encode(pile.values)
    hint = f"list[{len(pile.values)}]"
    reference = reference_to(execution.store, execution.execution_id, body, hint)
    execution.bodies[reference.key] = body
    pile.chunks.append(reference)
    pile.values, pile.weight = [], 0


def whole(execution: Execution, pile: Pile) -> Any:
    """LOOP-6: all values in index order; by one reference to their chunks when large."""
    if not pile.chunks and (
        execution.rules >= 2  # its event is fitted as a whole
        or surely_fits(pile.values, execution.largest)
        or len(encode(pile.values)) <= execution.largest
    ):
        return pile.values
    if pile.values:
        fold_away(execution, pile)
    body = encode({"chunks": [chunk.fields() for chunk in pile.chunks]})
    hint = f"chunks[{pile.count}]"
    reference = reference_to(execution.store, execution.execution_id, body, hint)
    execution.bodies[reference.key] = body
    return reference


def unfinished(loop: LoopRun) -> Iterator[int]:
    """Indexes that were offered and have not ended, in order."""
    return (index for index in range(loop.low, loop.offered) if index not in loop.ended)
