"""What a worker's report adds to the log: its own events, and what the server knows better."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from noetl.control.deciding import Deciding
from noetl.control.execution import Run
from noetl.control.folding import SEVERAL, conflict, locate, plain_writes
from noetl.control.loops import end, end_early, end_loop, offer, value_of
from noetl.control.reducers import LOOKS_INTO, MISSING, PILED, onto
from noetl.control.waits import take_suspended, take_wait_started
from noetl.errors import TemplateFailed
from noetl.messages import events as e
from noetl.messages.outcome import make_error
from noetl.messages.reference import Reference
from noetl.messages.requests import Report
from noetl.playbook.model import Reducer


def stands(run: Run | None, report: Report) -> bool:
    """Whether it is taken: not where its run has ended, or of an older epoch, or a second time."""
    part = run.parts.get(report.part) if run is not None else None
    if part is None or report.epoch < part.epoch:
        return False
    fresh = report.epoch > part.epoch
    if part.worker is None and not fresh:  # its lease has ended (EVT-3)
        return False
    # Else it came before, or one before it did not.
    return report.after is None or report.after == (0 if fresh else part.taken)


def take_report(deciding: Deciding, report: Report) -> None:
    """Record what happened on parts; a report that does not stand is refused."""
    run = deciding.execution.runs.get(report.step_run_id)
    for one in (report, *report.beside) if report.beside else (report,):
        if run is not None and stands(run, one):
            _take_in(deciding, run, one)
    if run is None or not deciding.events:
        return
    plan = deciding.plan.steps[run.step].loop
    if (
        plan is not None
        and plan.exec == "distributed"
        and run.step_run_id in deciding.execution.runs
    ):
        offer(deciding, run, plan)


def _take_in(deciding: Deciding, run: Run, report: Report) -> None:
    over = ends_plainly(run, report.events)
    if report.epoch > run.parts[report.part].epoch:
        claimed = e.TokenClaimed(
            step=run.step,
            step_run_id=run.step_run_id,
            worker=report.worker,
            epoch=report.epoch,
            part=report.part,
        )
        deciding.note(claimed) if over else deciding.emit(claimed)
    if over:
        deciding.emit_run(run, report.events)
        return
    if run.loop is None and type(report.events[-1]) in ENDS:
        _take_end(deciding, run, report.events)
        return
    events, at = report.events, 0
    follows = run.loop is None or bool(deciding.plan.waits or run.suspended)
    while at < len(events):
        kind = type(events[at])
        length = whole_iteration(events, at) if kind is e.IterationStarted and not follows else 0
        if length:
            deciding.emit_iteration(run, events[at : at + length])
            at += length
            continue
        take = TAKEN.get(kind)
        if take is None:
            deciding.emit(events[at])
        else:
            take(deciding, run, events[at])
        at += 1


def whole_iteration(events: list[e.Event], at: int) -> int:
    """
    How many events from there on are one iteration, from its start to a good end, that wrote
    nothing; 0 for anything else. Its frame need not be followed: nothing is left of it. Whoever
    reads the log does follow it, so nothing that he would trip over is taken for one.
    """
    first = events[at]
    if type(first) is not e.IterationStarted or first.parent_id is not None:
        return 0
    prefix = f"{first.iteration_id}."
    rest = events[at + 1 : at + 4]
    if [*map(type, rest)] == ONE_TASK:  # the most common one, at a glance
        task, done, end = cast(OneTask, rest)
        own = task.task_run_id == done.task_run_id and done.task_run_id.startswith(prefix)
        if own and is_plain(done) and same_iteration(first, end):
            return 4 if done.task_run_id[len(prefix) :].isdecimal() else 0
    for last in range(at + 1, len(events)):
        event = events[last]
        if type(event) is e.TaskStarted:
            plain = True
        elif type(event) is e.TaskDone:
            plain = is_plain(event)
        else:
            own = type(event) is e.IterationDone and same_iteration(first, event)
            return last + 1 - at if own else 0
        # A task run of the iteration itself: one below it is of a loop inside it.
        if not plain or not event.task_run_id.removeprefix(prefix).isdecimal():
            return 0
    return 0


OneTask = tuple[e.TaskStarted, e.TaskDone, e.IterationDone]
"""What follows the start of an iteration with one task that was called once."""
ONE_TASK: list[type[e.Event]] = [e.TaskStarted, e.TaskDone, e.IterationDone]


def same_iteration(first: e.IterationEvent, last: e.IterationEvent) -> bool:
    return (
        first.iteration_id == last.iteration_id
        and first.index == last.index
        and last.parent_id is None
    )


def is_plain(event: e.TaskDone) -> bool:
    """A good outcome that wrote nothing; what a jump or a failure leads to, the frame finds."""
    ok = event.outcome["status"] == "ok" and event.do not in FOUND
    return ok and event.to is None and not event.set_ctx


def ends_plainly(run: Run, events: list[e.Event]) -> bool:
    """
    Whether these are the rest of a run that ends well and wrote nothing. Its frame need not be
    followed: nothing is left of it.
    """
    if type(events[-1]) is not e.StepDone or run.frame is None or run.frame.inner is not None:
        return False
    for event in events:
        if type(event) is e.TaskDone:
            if not is_plain(event):
                return False
        elif type(event) not in PLAIN:
            return False
    return True


def _take_end(deciding: Deciding, run: Run, events: list[e.Event]) -> None:
    """The last report of a run: its frame need not be followed to the end."""
    last = len(events) - 2
    for number, event in enumerate(events):
        kind = type(event)
        if kind in FOLLOWED or (number == last and moves_no_more(run, event)):
            deciding.note(event)
        elif kind in TAKEN:
            TAKEN[kind](deciding, run, event)
        else:
            deciding.emit(event)


def moves_no_more(run: Run, event: e.Event) -> bool:
    """Whether it is an outcome that matters to nothing but a run that ends now."""
    if type(event) is not e.TaskDone or not is_plain(event):
        return False
    return run.frame is not None and run.frame.inner is None


def _task_done(deciding: Deciding, run: Run, event: e.TaskDone) -> None:
    """A write to ctx becomes a patch, or is refused where iterations collide (LOOP-5)."""
    if not event.set_ctx:
        deciding.emit(event)
        return
    around = locate(run, event.task_run_id, deciding.plan.steps[run.step]).around
    reduce = deciding.plan.executor.reduce
    patch = plain_writes(around, event.set_ctx)
    collision = conflict(around, {key: patch[key] for key in patch if key not in reduce})
    if collision is not None:
        deciding.emit(refused(event, *collision))
        return
    try:
        patch = {key: folded(deciding, reduce, key, value) for key, value in patch.items()}
    except (TypeError, TemplateFailed) as fault:
        deciding.emit(failing(event, f"the reducer of a ctx key refused a write: {fault}"))
        return
    deciding.emit(event)
    if patch:
        deciding.emit(
            e.CtxPatched(
                patch=patch,
                step=run.step,
                step_run_id=run.step_run_id,
                task_run_id=event.task_run_id,
            )
        )


def folded(deciding: Deciding, reduce: Mapping[str, Reducer], key: str, value: Any) -> Any:
    """SCOPE-6: a write to a key that the executor reduces, put onto what `ctx` has now."""
    how = reduce.get(key)
    if how is None:
        return value
    before = deciding.execution.ctx.get(key, MISSING)
    looked_into = how in LOOKS_INTO or how in PILED
    if looked_into and isinstance(before, Reference):
        before = value_of(deciding, before)
    if how in LOOKS_INTO | {"extend"} and isinstance(value, Reference):
        value = value_of(deciding, value)
    return onto(how, before, value)


def refused(event: e.TaskDone, key: str, index: int, first: int) -> e.TaskDone:
    """The same outcome, with the failure that its write has come to."""
    others = "several iterations" if first == SEVERAL else f"iteration {first}"
    message = (
        f"iteration {index} may not write ctx.{key}: {others} wrote another value;"
        " declare a reducer for it (loop.spec.policy.reduce)"
    )
    return failing(event, message, key=key)


def failing(event: e.TaskDone, message: str, **more: Any) -> e.TaskDone:
    error = make_error("ctx_conflict", message, **more)
    return msgspec.structs.replace(event, do="fail", to=None, delay=0.0, set_ctx={}, error=error)


def _boundary(deciding: Deciding, run: Run, event: e.StepDone | e.StepFailed) -> None:
    if run.loop is not None and isinstance(event, e.StepFailed):
        end_early(deciding, run, event.error, event.source)
    else:
        end(deciding, run, event)


def _loop_done(deciding: Deciding, run: Run, event: e.LoopDone) -> None:
    """The worker says that a local loop is over; the server holds what it came to (LOOP-10)."""
    plan = deciding.plan.steps[run.step].loop
    if event.parent_id is not None or plan is None:
        deciding.emit(event)
    else:
        end_loop(deciding, run, plan, "worker")


ENDS = {e.StepDone, e.StepFailed}
FOLLOWED = {e.StepStarted, e.TaskStarted, e.TaskCached}
"""Events that move nothing but the run itself."""
PLAIN = FOLLOWED | {e.StepDone}
FOUND = ("jump", "fail")
"""What outcomes do that needs more of the frame than its next task."""

TAKEN: dict[type[e.Event], Any] = {
    e.TaskDone: _task_done,
    e.StepDone: _boundary,
    e.StepFailed: _boundary,
    e.LoopDone: _loop_done,
    e.WaitStarted: take_wait_started,
    e.TaskSuspended: take_suspended,
}
"""Events that are more than recorded; every other one is recorded as it came."""
