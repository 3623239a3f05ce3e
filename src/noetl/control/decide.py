"""
Which events follow from an input? The whole control plane is this question.

House rules: no IO, no clock, no chance; the state is read and moved through `Deciding` alone;
the same input on the same state gives the same events, which is what replay compares (EVT-5).
"""

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from noetl.control.deciding import Deciding, Needs
from noetl.control.ending import settle
from noetl.control.execution import Execution, Part, is_stopped
from noetl.control.limits import waiting_for
from noetl.control.loops import end, end_early, offer
from noetl.control.reporting import take_report
from noetl.control.restoring import (
    UNBEGUN,
    onto_old,
    place_granted,
    restore,
    resume_parked,
    take_up,
)
from noetl.control.scheduling import fire, park
from noetl.control.timing import too_long
from noetl.control.waits import answer_approval, send_signal, stop_waiting, take_due
from noetl.errors import NeedsBody, TakesLong, TemplateFailed
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.outcome import make_error
from noetl.pipeline.policy import template_error
from noetl.playbook.plan import Plan
from noetl.playbook.workload import materialize

LEASES = 3
"""T11: the run fails when this many workers were lost on it without progress."""


def decide(
    plan: Plan,
    execution: Execution,
    given: r.Input,
    *,
    at: int,
    bodies: MutableMapping[str, Any] | None = None,
    lost: Mapping[str, str] | None = None,
    hurried: bool = False,
) -> list[e.Event] | Needs:
    """
    The events that follow, in order; none when the input comes too late or twice.

    `execution` is moved along; `at` is the time (ms) that the row will have. `bodies` holds the
    values behind references, by key; `lost` says why one cannot be had (RES-4). `likely` tells
    beforehand which will be asked for. Needs means: the execution is spoiled; load those bodies,
    and ask again on a state that was read again from the log. Whoever is `hurried`, since an event
    loop waits for him, may be told so of a decision that only takes long (TPL-5).
    """
    made = {} if bodies is None else bodies
    return decide_next(Deciding(plan, execution, made, lost or {}, hurried=hurried), given, at=at)


def decide_next(deciding: Deciding, given: r.Input, *, at: int) -> list[e.Event] | Needs:
    """The same for an input that shares what the decisions of one row are made with."""
    execution = deciding.execution
    if execution.finished:  # NEXT-8: from then on every report is refused
        return []
    execution.now = at
    deciding.begin()
    try:
        TAKE[type(given)](deciding, given)
        if deciding.events:
            settle(deciding)
    except NeedsBody as need:
        return Needs(tuple(deciding.missing) or (need.reference,))
    except TakesLong:
        return Needs((), time=True)
    return deciding.events


def _start(deciding: Deciding, request: r.StartExecution) -> None:
    """SRV-2: the request sequence, each part an event."""
    if deciding.execution.seq:
        return
    plan = deciding.plan
    deciding.know(request.written)
    # The request's own large values are moved already, to there and by these rules.
    deciding.execution.store, deciding.execution.rules = request.store, request.rules
    requested = e.ExecutionRequested(
        path=request.path,
        version=request.version,
        digest=request.digest,
        folder=request.folder,
        store=request.store,
        payload=request.payload,
        ctx=request.ctx,
        trace_id=request.trace_id,
        parent_execution_id=request.parent_execution_id,
        parent_id=request.parent_id,
        origin_execution_id=request.origin_execution_id,
        origin_seq=request.origin_seq,
        chosen=request.chosen,
        trigger=request.trigger,
        depth=request.depth,
        sender=request.sender,
        rules=request.rules,
    )
    deciding.emit(deciding.fit(requested, strict=True))
    if request.refused is not None:
        deciding.make(e.RequestEvaluated(error=request.refused))
        return
    kept = request.kept
    payload = request.payload if kept is None else onto_old(kept.workload, request.payload)
    try:
        execution_id = deciding.execution.execution_id
        workload = deciding.evaluate(
            lambda seen: materialize(plan, payload, execution_id, seen), deciding.beside
        )
        evaluated = deciding.fit(e.RequestEvaluated(workload=workload), strict=True)
    except TemplateFailed as fault:
        deciding.make(e.RequestEvaluated(error=template_error(fault, "`workload`")))
        return
    deciding.emit(evaluated)
    if kept is not None:
        restore(deciding, kept)
    asked = request.limit
    if asked is not None and asked.place:
        deciding.emit(
            e.ExecutionQueued(
                limit=asked.limit, key=asked.key, place=asked.place, priority=asked.priority
            )
        )
        return
    if asked is not None:
        deciding.emit(e.ExecutionAdmitted(limit=asked.limit, key=asked.key))
    _begin(deciding)


def _begin(deciding: Deciding) -> None:
    plan = deciding.plan
    if deciding.execution.origin_execution_id is not None:
        take_up(deciding)
        return
    deciding.emit(e.WorkflowStarted(step=plan.entry))
    token_id = f"{deciding.execution.seq}.0"
    deciding.emit(e.TokenCreated(token_id=token_id, step=plan.entry))
    deciding.tokens.append(deciding.execution.tokens[token_id])


def _limit_granted(deciding: Deciding, granted: r.LimitGranted) -> None:
    """LIMIT-2: what waited for its limit goes on; whoever is told twice goes on once."""
    execution = deciding.execution
    if granted.holder:
        waits = waiting_for(execution, granted.holder)
        if isinstance(waits, e.StepParked):
            place_granted(deciding, execution.runs[granted.holder], waits)
        elif waits is not None and execution.status == "paused":
            park(deciding, waits, "paused")
        elif waits is not None:
            fire(deciding, waits)
    elif execution.status == "queued" and not execution.stop:
        deciding.emit(e.ExecutionAdmitted(limit=execution.path, key=execution.limit_key))
        _begin(deciding)


def _cancel(deciding: Deciding, request: r.CancelExecution) -> None:
    if deciding.execution.stop != "cancel":
        why, who = request.reason, request.sender
        deciding.emit(e.ExecutionCancelled(by="cancel", reason=why, sender=who))
        stop_loops(deciding)
        stop_waiting(deciding)


def _time_is_up(deciding: Deciding, request: r.TimeIsUp) -> None:
    if not deciding.execution.stop:
        said = f"the execution took longer than its limit of {request.seconds:g} s"
        error = make_error("timeout", said)
        deciding.emit(e.ExecutionCancelled(by="timeout", reason="timeout", error=error))
        stop_loops(deciding)
        stop_waiting(deciding)


def _step_time_is_up(deciding: Deciding, request: r.StepTimeIsUp) -> None:
    run = deciding.execution.runs.get(request.step_run_id)
    if run is not None:
        end_early(deciding, run, too_long(run.step, request.seconds), deciding.own)


def stop_loops(deciding: Deciding) -> None:
    """A loop with nothing in flight has nobody who would report its end."""
    for run in list(deciding.execution.runs.values()):
        if not run.parts and deciding.execution.origin_execution_id is not None:
            # A restart that waited for its turn (LIMIT-2): nobody has it.
            end_early(deciding, run, UNBEGUN, deciding.own)
            continue
        plan = deciding.plan.steps[run.step].loop
        if run.loop is not None and run.loop.exec == "distributed" and plan is not None:
            offer(deciding, run, plan)


def _pause(deciding: Deciding, request: r.PauseExecution) -> None:
    if deciding.execution.status == "running" and not deciding.execution.stop:
        deciding.emit(e.ExecutionPaused(reason=request.reason, sender=request.sender))


def _resume(deciding: Deciding, request: r.ResumeExecution) -> None:
    execution = deciding.execution
    if execution.status != "paused":
        return
    since = execution.paused_at
    paused = 0 if since is None else max(0, execution.now - since)
    resumed = e.ExecutionResumed(reason=request.reason, sender=request.sender, paused=paused)
    deciding.emit(resumed)
    held = [token for token in execution.tokens.values() if token.waits == "paused"]
    deciding.tokens.extend(held)
    resume_parked(deciding)


def _part_claimed(deciding: Deciding, claimed: r.PartClaimed) -> None:
    run = deciding.execution.runs.get(claimed.step_run_id)
    part = run.parts.get(claimed.part) if run is not None else None
    if run is None or part is None or claimed.epoch <= part.epoch:
        return
    deciding.emit(
        e.TokenClaimed(**run.ids, worker=claimed.worker, epoch=claimed.epoch, part=claimed.part)
    )


def _lease_lost(deciding: Deciding, lost: r.LeaseLost) -> None:
    run = deciding.execution.runs.get(lost.step_run_id)
    part = run.parts.get(lost.part) if run is not None else None
    if run is None or part is None:
        return
    ids = run.ids
    if lost.epoch > part.epoch and lost.worker is not None and not lost.returned:
        claim = e.TokenClaimed(**ids, worker=lost.worker, epoch=lost.epoch, part=lost.part)
        deciding.emit(claim)
    if part.epoch != lost.epoch or part.worker is None:
        return
    deciding.emit(
        e.LeaseExpired(
            **ids,
            epoch=lost.epoch,
            part=lost.part,
            worker=part.worker,
            returned=lost.returned,
            uncounted=not lost.counted,
        )
    )
    if is_stopped(deciding.execution, deciding.plan, run.step):
        end(deciding, run, e.StepFailed(**ids, error=UNCONFIRMED, source=deciding.own))
    elif part.lost >= LEASES:
        error = given_up(deciding.execution, part)
        end(deciding, run, e.StepFailed(**ids, error=error, source=deciding.own))


UNCONFIRMED = make_error(
    "cancelled", "the worker did not confirm the cancellation before its lease ended"
)


def given_up(execution: Execution, part: Part) -> dict[str, Any]:
    """What is known of a part that workers die of; why they do is not."""
    error = make_error("worker_lost", f"{part.lost} workers were lost while they ran this step")
    if execution.rules >= 2:
        names = ", ".join(part.workers)
        error["message"] += f", and none of them recorded anything in between: {names}"
        error["workers"] = part.workers
    return error


TAKE: dict[type[Any], Callable[[Deciding, Any], None]] = {
    r.StartExecution: _start,
    r.LimitGranted: _limit_granted,
    r.CancelExecution: _cancel,
    r.TimeIsUp: _time_is_up,
    r.StepTimeIsUp: _step_time_is_up,
    r.PauseExecution: _pause,
    r.ResumeExecution: _resume,
    r.SendSignal: send_signal,
    r.AnswerApproval: answer_approval,
    r.WaitsDue: take_due,
    r.PartClaimed: _part_claimed,
    r.LeaseLost: _lease_lost,
    r.Report: take_report,
}
