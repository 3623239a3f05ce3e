"""Which iterations may start now? Is the loop done? (LOOP)"""

from typing import Any

from noetl.control.deciding import Deciding
from noetl.control.dispatch import may_run_ahead
from noetl.control.execution import LoopRun, Run, is_stopped
from noetl.control.folding import fold_rest, length_of, whole
from noetl.control.reducers import onto
from noetl.errors import TemplateFailed
from noetl.expression.lookup import body_of
from noetl.messages import events as e
from noetl.messages.outcome import make_error
from noetl.messages.reference import Reference
from noetl.pipeline.policy import template_error
from noetl.playbook.plan import LoopPlan

SPREAD = 4
"""Parts that share what may be in flight: as many workers can take part in a loop at once."""


def start_loop(deciding: Deciding, run: Run, plan: LoopPlan) -> None:
    """LOOP-1: evaluate the collection once, record it, and offer what may start."""
    ids = run.ids
    try:
        scope = deciding.scope(run.args)
        items = deciding.evaluate(plan.items, scope)
        total = length_of(items)
        if total is None:  # a list that was streamed into the store says nothing of its length
            total = length_of(value_of(deciding, items))
        started = None
        if total is not None:
            begun = e.LoopStarted(**ids, total=total, items=items, mode=plan.mode, exec=plan.exec)
            started = deciding.fit(begun, strict=True)
    except TemplateFailed as fault:
        error = template_error(fault, f"`loop.in` of step '{run.step}'")
        end(deciding, run, deciding.fit(e.StepFailed(**ids, error=error, source=deciding.own)))
        return
    if started is None:
        end(deciding, run, e.StepFailed(**ids, error=no_list(items, deciding), source=deciding.own))
        return
    deciding.emit(started)
    if total and plan.exec == "local":
        deciding.emit(e.TokenEnqueued(**ids, pool=deciding.plan.executor.pool))
    else:
        offer(deciding, run, plan)


def no_list(items: Any, deciding: Deciding) -> dict[str, Any]:
    """LOOP-8. Before rules 4 it was said in other words, and old logs hold those (EVT-5)."""
    found = type(items).__name__ if not isinstance(items, Reference) else "a stored object"
    must = "evaluate" if deciding.execution.rules >= 4 else "come"
    return make_error("loop", f"`loop.in` must {must} to a list, got {found}: {items!r:.80}")


def offer(deciding: Deciding, run: Run, plan: LoopPlan) -> None:
    """LOOP-2, LOOP-9: hand out the next iterations, or end the loop when nothing is left."""
    loop = run.loop
    assert loop is not None, "the loop has started"
    in_flight = loop.offered - loop.done - loop.failed
    if not may_start(deciding, run, loop, plan):
        # Of a loop that is stopped, those that wait have nobody to tell their end (WAIT-2).
        waits = not run.parts and is_stopped(deciding.execution, deciding.plan, run.step)
        if in_flight == 0 or waits:
            end_loop(deciding, run, plan, deciding.own)
        return
    last = min(loop.offered + plan.in_flight - in_flight, loop.total, loop.low + plan.window)
    most = largest_part(deciding, run, plan)
    while loop.offered < last:
        deciding.emit(
            e.TokenEnqueued(
                step=run.step,
                step_run_id=run.step_run_id,
                pool=deciding.plan.executor.pool,
                part=run.next_part,
                first=loop.offered,
                last=min(loop.offered + most, last),
            )
        )


def largest_part(deciding: Deciding, run: Run, plan: LoopPlan) -> int:
    """Iterations that touch nothing are over at once: to spread them costs more than it brings."""
    idle = deciding.execution.rules >= 2 and may_run_ahead(deciding.plan.steps[run.step])
    return plan.in_flight if idle else -(-plan.in_flight // SPREAD)


def may_start(deciding: Deciding, run: Run, loop: LoopRun, plan: LoopPlan) -> bool:
    """LOOP-4: by default a failed iteration starts no further ones."""
    failing = loop.failed > 0 and plan.on_failure == "stop"
    stopped = is_stopped(deciding.execution, deciding.plan, run.step)
    return loop.offered < loop.total and not failing and not stopped


def end_loop(deciding: Deciding, run: Run, plan: LoopPlan, source: e.Source) -> None:
    """
    Exactly one terminal event (LOOP-4), after the reducers' one patch (LOOP-5).

    `source` is who knows that it is over (LOOP-10).
    """
    loop = run.loop
    assert loop is not None, "the loop has started"
    ids = run.ids
    fold_rest(deciding.execution, loop, plan)
    fault = patch_reduced(deciding, run, loop, plan)
    done = came_to(deciding, run, loop, source)
    cut_short = loop.done + loop.failed < loop.total
    error: dict[str, Any] | None = fault
    if cut_short and is_stopped(deciding.execution, deciding.plan, run.step):
        error = stopped(deciding)
    elif loop.failed and plan.on_failure == "stop":
        error = failure(loop)
    failed = (
        None
        if error is None
        else e.StepFailed(**ids, error=error, loop=summary(done), source=source)
    )
    end(deciding, run, deciding.fit(failed or done))


def end_early(deciding: Deciding, run: Run, error: dict[str, Any], source: e.Source) -> None:
    """A run's time is up, or it was cancelled: what its loop came to so far is kept (LOOP-4)."""
    loop, plan = run.loop, deciding.plan.steps[run.step].loop
    if loop is None or plan is None:
        end(deciding, run, e.StepFailed(**run.ids, error=error, source=source))
        return
    fold_rest(deciding.execution, loop, plan)
    patch_reduced(deciding, run, loop, plan)
    done = summary(came_to(deciding, run, loop, source))
    failed = e.StepFailed(**run.ids, error=error, loop=done, source=source)
    end(deciding, run, deciding.fit(failed))


def patch_reduced(
    deciding: Deciding, run: Run, loop: LoopRun, plan: LoopPlan
) -> dict[str, Any] | None:
    """The reducers' one patch (LOOP-5); an error if what they began with cannot be had."""
    reduced = dict(loop.reduced)
    try:
        for key, base in loop.bases.items():
            if key in reduced:
                reduced[key] = onto(plan.reduce[key], value_of(deciding, base), reduced[key])
    except TypeError as fault:
        return make_error("loop", f"a reducer failed: {fault}")
    except TemplateFailed as fault:
        return template_error(fault, f"`loop.spec.policy.reduce` of step '{run.step}'")
    for key, pile in loop.piles.items():
        reduced[key] = whole(deciding.execution, pile)
    if deciding.execution.rules >= 5:  # what nobody wrote stays what others made of it
        reduced = {key: value for key, value in reduced.items() if key in loop.reduces}
    if reduced:
        ordered = {key: reduced[key] for key in plan.reduce if key in reduced}
        patch = reduced if deciding.execution.rules < 2 else ordered
        deciding.make(e.CtxPatched(**run.ids, patch=patch))
    return None


def value_of(deciding: Deciding, reference: Reference) -> Any:
    return deciding.evaluate(lambda scope: body_of(scope, reference), deciding.scope({}))


def came_to(deciding: Deciding, run: Run, loop: LoopRun, source: e.Source) -> e.LoopDone:
    return e.LoopDone(
        **run.ids,
        total=loop.total,
        done=loop.done,
        failed=loop.failed,
        results=whole(deciding.execution, loop.results),
        errors=whole(deciding.execution, loop.errors),
        source=source,
    )


def summary(done: e.LoopDone) -> dict[str, Any]:
    """LOOP-4: `event.loop`."""
    return {
        "total": done.total,
        "done": done.done,
        "failed": done.failed,
        "results": done.results,
        "errors": done.errors,
    }


def failure(loop: LoopRun) -> dict[str, Any]:
    """OUT-4 `loop`: names the lowest failed index."""
    assert loop.first_failed is not None, "an iteration has failed"
    index, cause = loop.first_failed
    said = f"iteration {index} failed: {cause.get('message', '')}"
    return make_error("loop", said, index=index, cause=cause)


def stopped(deciding: Deciding) -> dict[str, Any]:
    return make_error("cancelled", f"the loop was stopped ({deciding.execution.stop})")


def end(deciding: Deciding, run: Run, boundary: e.Boundary) -> None:
    """Record the end of a run; its router is asked when the input has been taken in."""
    deciding.emit(boundary)
    deciding.boundaries.append((run, boundary, deciding.execution.seq))
