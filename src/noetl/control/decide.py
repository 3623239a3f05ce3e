"""
Which events follow from an input? The whole control plane is this question.

House rules: no IO, no clock, no chance; the state is read and moved through `Deciding` alone;
the same input on the same state gives the same events, which is what replay compares (EVT-5).
"""

from collections.abc import Callable, MutableMapping
from typing import Any

from noetl.control.deciding import Deciding
from noetl.control.ending import settle
from noetl.control.execution import Execution, is_stopped
from noetl.control.loops import end, end_early, offer
from noetl.control.reporting import take_report
from noetl.errors import TemplateFailed
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.reference import Reference
from noetl.pipeline.policy import template_error
from noetl.playbook.plan import Plan
from noetl.playbook.workload import materialize

LEASES = 3
"""T11: the run fails when this many leases on it have run out."""


def decide(
    plan: Plan,
    execution: Execution,
    given: r.Input,
    *,
    bodies: MutableMapping[str, Any] | None = None,
    load: Callable[[Reference], Any] | None = None,
) -> list[e.Event]:
    """
    The events that follow, in order; none when the input comes too late or twice.

    `execution` is moved along. `bodies` holds values behind references, `load` can get another
    one at once. Without it NeedsBody means: load that body, and ask again on a state that was
    read again from the log.
    """
    deciding = Deciding(plan, execution, {} if bodies is None else bodies, load)
    if execution.finished:  # NEXT-8: from then on every report is refused
        return deciding.events
    TAKE[type(given)](deciding, given)
    if deciding.events:
        settle(deciding)
    return deciding.events


def _start(deciding: Deciding, request: r.StartExecution) -> None:
    """SRV-2: the request sequence, each part an event."""
    if deciding.execution.seq:
        return
    plan = deciding.plan
    deciding.execution.store = request.store  # the request's own large values go there already
    deciding.emit(
        e.ExecutionRequested(
            path=request.path,
            version=request.version,
            digest=request.digest,
            folder=request.folder,
            store=request.store,
            payload=deciding.fit_all(request.payload),
            ctx=deciding.fit_all(request.ctx),
            trace_id=request.trace_id,
            parent_execution_id=request.parent_execution_id,
            parent_id=request.parent_id,
        )
    )
    try:
        workload = materialize(plan, request.payload)
    except TemplateFailed as fault:
        deciding.emit(e.RequestEvaluated(error=template_error(fault, "`workload`")))
        return
    deciding.emit(e.RequestEvaluated(workload=deciding.fit_all(workload)))
    deciding.emit(e.WorkflowStarted(step=plan.entry))
    token_id = f"{deciding.execution.seq}.0"
    deciding.emit(e.TokenCreated(token_id=token_id, step=plan.entry))
    deciding.tokens.append(deciding.execution.tokens[token_id])


def _cancel(deciding: Deciding, request: r.CancelExecution) -> None:
    if deciding.execution.stop != "cancel":
        deciding.emit(e.ExecutionCancelled(by="cancel", reason=request.reason))
        stop_loops(deciding)


def _time_is_up(deciding: Deciding, request: r.TimeIsUp) -> None:
    if not deciding.execution.stop:
        error = {
            "kind": "timeout",
            "message": f"the execution took longer than its limit of {request.seconds:g} s",
            "retryable": False,
        }
        deciding.emit(e.ExecutionCancelled(by="timeout", reason="timeout", error=error))
        stop_loops(deciding)


def _step_time_is_up(deciding: Deciding, request: r.StepTimeIsUp) -> None:
    run = deciding.execution.runs.get(request.step_run_id)
    plan = deciding.plan.steps[run.step].loop if run is not None else None
    if run is None or plan is None:
        return
    message = f"step '{run.step}' took longer than its timeout of {request.seconds:g} s"
    end_early(deciding, run, plan, {"kind": "timeout", "message": message, "retryable": True})


def stop_loops(deciding: Deciding) -> None:
    """A loop with nothing in flight has nobody who would report its end."""
    for run in list(deciding.execution.runs.values()):
        plan = deciding.plan.steps[run.step].loop
        if run.loop is not None and run.loop.exec == "distributed" and plan is not None:
            offer(deciding, run, plan)


def _pause(deciding: Deciding, request: r.PauseExecution) -> None:
    if deciding.execution.status == "running" and not deciding.execution.stop:
        deciding.emit(e.ExecutionPaused(reason=request.reason))


def _resume(deciding: Deciding, request: r.ResumeExecution) -> None:
    execution = deciding.execution
    if execution.status != "paused":
        return
    deciding.emit(e.ExecutionResumed(reason=request.reason))
    held = [token for token in execution.tokens.values() if token.waits == "paused"]
    deciding.tokens.extend(held)


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
            **ids, epoch=lost.epoch, part=lost.part, worker=part.worker, returned=lost.returned
        )
    )
    stopped = is_stopped(deciding.execution, deciding.plan, run.step)
    if stopped or part.lost >= LEASES:
        end(deciding, run, e.StepFailed(**ids, error=given_up(part.lost, cancelled=stopped)))


def given_up(lost: int, *, cancelled: bool) -> dict[str, Any]:
    if cancelled:
        message = "the worker did not confirm the cancellation before its lease ended"
        return {"kind": "cancelled", "message": message, "retryable": False}
    message = f"{lost} workers were lost while they ran this step"
    return {"kind": "worker_lost", "message": message, "retryable": False}


TAKE: dict[type[Any], Callable[[Deciding, Any], None]] = {
    r.StartExecution: _start,
    r.CancelExecution: _cancel,
    r.TimeIsUp: _time_is_up,
    r.StepTimeIsUp: _step_time_is_up,
    r.PauseExecution: _pause,
    r.ResumeExecution: _resume,
    r.PartClaimed: _part_claimed,
    r.LeaseLost: _lease_lost,
    r.Report: take_report,
}
