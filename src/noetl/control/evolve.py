"""
One event onto one execution. Never refuses and never decides: what is in the log has happened.

House rules of this file: an execution changes nowhere else; a function here reads nothing but
the event, the execution and the plan, so that replay comes to the same state (EVT-5).
"""

from collections.abc import Callable
from typing import Any, cast

from msgspec.structs import replace

from noetl.control.execution import (
    Execution,
    Failure,
    KeptCounts,
    KeptSignal,
    Meeting,
    Part,
    Run,
    Suspension,
    Token,
)
from noetl.control.folding import (
    begin_iteration,
    begin_loop,
    begin_run,
    end_iteration,
    part_of,
    take_task_done,
)
from noetl.control.timing import move_clocks
from noetl.control.waits_held import WAITS, let_go, waits_at
from noetl.messages import events as e
from noetl.messages.codec import decode, encode
from noetl.messages.names import CLASSES
from noetl.messages.places import place_of
from noetl.pipeline.frame import TaskWait
from noetl.playbook.plan import Plan

REMEMBERED = 10_000
"""Ids of signals that an execution remembers (WAIT-4)."""

Evolve = Callable[[Execution, Any, Plan], None]


GOES_ON = frozenset(("continue", "jump", "break"))
"""What a policy may say after an error so that its pipeline goes on, or ends well (TASK-2)."""


def evolve(execution: Execution, event: e.Event, plan: Plan) -> None:
    """Apply `event`, which gets the next `seq`."""
    execution.seq += 1
    change = EVOLVE.get(type(event))
    if change is not None:
        change(execution, event, plan)


def _requested(execution: Execution, event: e.ExecutionRequested, plan: Plan) -> None:
    execution.path = event.path
    execution.version = event.version
    execution.digest = event.digest
    execution.store = event.store
    execution.rules = event.rules
    execution.largest = plan.limits.max_payload_bytes
    execution.ctx = event.ctx
    execution.trace_id = event.trace_id
    execution.parent_execution_id = event.parent_execution_id
    execution.origin_execution_id = event.origin_execution_id
    execution.origin_seq = event.origin_seq


def _evaluated(execution: Execution, event: e.RequestEvaluated, _: Plan) -> None:
    execution.workload = event.workload
    if event.error is not None:
        _fail(execution, "", event.error)


def _restored(execution: Execution, event: e.ExecutionRestored, _: Plan) -> None:
    kept: KeptCounts = decode(encode(event.kept), KeptCounts)
    execution.ctx, execution.leaves = event.ctx, dict(event.leaves)
    execution.meetings, execution.tallies = kept.meetings, kept.tallies
    execution.step_runs = kept.step_runs
    execution.failures, execution.failed = kept.failures, kept.failed
    execution.errors_passed = kept.errors_passed
    execution.failures_handled = kept.failures_handled
    execution.signals = kept.signals


def _step_restored(execution: Execution, event: e.StepRestored, _: Plan) -> None:
    run: Run = decode(encode(event.run), Run)  # a copy: what is recorded never changes
    was, now = (one.partition(".")[0] for one in (run.step_run_id, event.step_run_id))
    run.step_run_id = event.step_run_id
    run.suspended = {
        (name := now + wait.task_run_id.removeprefix(was)): replace(wait, task_run_id=name)
        for wait in run.suspended.values()
    }
    execution.runs[event.step_run_id] = run


def _token_created(execution: Execution, event: e.TokenCreated, plan: Plan) -> None:
    token = Token(
        token_id=event.token_id,
        step=event.step,
        args=event.args,
        seq=execution.seq,
        source=event.source,
        parent_step_run_id=event.parent_step_run_id,
        rounds=event.rounds,
    )
    execution.tokens[event.token_id] = token
    if event.step == plan.final:  # once, whatever becomes of the token (NEXT-6)
        execution.final_done = True
    if plan.steps[event.step].join is not None and event.source is not None:
        if event.round:  # it met others before the restart
            _stand(execution, token, event.round)
        else:
            _meet(execution, token, event.source)


def _meet(execution: Execution, token: Token, source: str) -> None:
    """Give the token its round at the join (NEXT-7)."""
    meeting = execution.meetings.setdefault(token.step, Meeting())
    passes = token.rounds.get(token.step, 0)
    arrival = f"{passes}/{source}"
    number = meeting.arrived.get(arrival, 0) + 1
    meeting.arrived[arrival] = number
    _stand(execution, token, f"{passes}/{number}")


def _stand(execution: Execution, token: Token, round_: str) -> None:
    meeting = execution.meetings[token.step]
    token.round = round_
    if round_ not in meeting.fired and token.source is not None:
        meeting.waiting.setdefault(round_, {})[token.source] = token.token_id


def _token_parked(execution: Execution, event: e.TokenParked, _: Plan) -> None:
    token = execution.tokens[event.token_id]
    token.waits = event.reason
    if event.reason == "limit":
        token.key, token.priority = event.key, event.priority


def _token_dropped(execution: Execution, event: e.TokenDropped, _: Plan) -> None:
    token = execution.tokens.pop(event.token_id)
    meeting = execution.meetings.get(token.step)
    if meeting is not None and token.source is not None:
        meeting.waiting.get(token.round, {}).pop(token.source, None)
    if event.error is not None:
        _fail(execution, event.step, event.error)


def _token_absorbed(execution: Execution, event: e.TokenAbsorbed, _: Plan) -> None:
    execution.tokens.pop(event.token_id)


def _admit_evaluated(execution: Execution, event: e.AdmitEvaluated, _: Plan) -> None:
    execution.tokens[event.token_id].verdict = event.allow
    if event.error is not None:
        _fail(execution, event.step, event.error)


def _step_scheduled(execution: Execution, event: e.StepScheduled, plan: Plan) -> None:
    tokens = [execution.tokens.pop(token_id) for token_id in event.tokens]
    step = plan.steps[event.step]
    if step.join is not None and tokens[0].round:
        meeting = execution.meetings[event.step]
        meeting.waiting.pop(tokens[0].round, None)
        if len(tokens) < len(step.join.sources):  # others may still come, and are absorbed
            meeting.fired[tokens[0].round] = True
    args = tokens[0].args if event.args is None else event.args
    rounds = tokens[0].rounds if event.rounds is None else event.rounds
    begin_run(execution, event, step, args, rounds)


def _step_parked(execution: Execution, event: e.StepParked, _: Plan) -> None:
    execution.runs[event.step_run_id].parked = event


def _token_enqueued(execution: Execution, event: e.TokenEnqueued, _: Plan) -> None:
    run = execution.runs[event.step_run_id]
    run.parts[event.part] = part_of(event)
    run.next_part = event.part + 1
    run.parked = None
    loop = run.loop
    if loop is not None and event.last > loop.offered:
        loop.offered = event.last
    elif loop is not None and loop.exec == "distributed":
        iteration = loop.active.get(event.first)
        if iteration is not None and iteration.away:  # its wait is over (WAIT-2)
            iteration.away = "back"


def _token_claimed(execution: Execution, event: e.TokenClaimed, _: Plan) -> None:
    run = execution.runs[event.step_run_id]
    part = run.parts[event.part]
    part.worker, part.epoch, part.taken = event.worker, event.epoch, 0
    if run.since is None and execution.rules >= 2:
        run.since = execution.now


def _step_started(execution: Execution, event: e.StepStarted, _: Plan) -> None:
    run = execution.runs[event.step_run_id]
    run.started = True
    run.parts[0].taken += 1


def _lease_expired(execution: Execution, event: e.LeaseExpired, _: Plan) -> None:
    part = execution.runs[event.step_run_id].parts[event.part]
    part.worker = None
    if event.returned or event.uncounted:
        return
    part.lost += 1
    if execution.rules >= 2 and event.worker is not None:
        part.workers = [*part.workers, event.worker]


def _task_started(execution: Execution, event: e.TaskStarted, _: Plan) -> None:
    run = execution.runs[event.step_run_id]
    run.parts[event.part].taken += 1
    if run.suspended:
        run.suspended.pop(event.task_run_id, None)


def _task_cached(execution: Execution, event: e.TaskCached, _: Plan) -> None:
    execution.runs[event.step_run_id].parts[event.part].taken += 1


def progress(execution: Execution, part: Part) -> None:
    """What was recorded is safe: workers that were lost before it count no more (T11)."""
    part.taken += 1
    if part.lost and execution.rules >= 2:
        part.lost, part.workers = 0, []


def _task_done(execution: Execution, event: e.TaskDone, plan: Plan) -> None:
    run = execution.runs[event.step_run_id]
    progress(execution, run.parts[event.part])
    if run.suspended:
        run.suspended.pop(event.task_run_id, None)
    if event.outcome["status"] == "error" and event.do in GOES_ON:
        execution.errors_passed += 1
    if plan.waits:
        waits_at(run, event.task_run_id).pop(event.task_run_id, None)
    take_task_done(execution, run, event, plan.steps[run.step], plan.executor.reduce)


def _task_suspended(execution: Execution, event: e.TaskSuspended, _: Plan) -> None:
    run = execution.runs[event.step_run_id]
    run.parts[event.part].taken += 1
    if event.reason == WAITS:
        let_go(run, event)
        return
    run.suspended = {
        **run.suspended,
        event.task_run_id: Suspension(
            task_run_id=event.task_run_id,
            reason=event.reason,
            due=event.due,
            waits_for=event.waits_for,
            since=execution.now,
        ),
    }


def _wait_started(execution: Execution, event: e.WaitStarted, _: Plan) -> None:
    run = execution.runs[event.step_run_id]
    run.parts[event.part].taken += 1
    waits_at(run, event.task_run_id)[event.task_run_id] = TaskWait(
        **run.ids,
        task=event.task,
        task_run_id=event.task_run_id,
        awaits=event.awaits,
        seq=execution.seq,
        since=execution.now,
        due=event.due,
        lent=event.lent,
    )


def _wait_done(execution: Execution, event: e.WaitDone, _: Plan) -> None:
    run = execution.runs[event.step_run_id]
    waits_at(run, event.task_run_id)[event.task_run_id].done = event
    if event.kept is not None:
        del execution.signals[event.kept]
    if event.by == "approval":
        execution.answers[place_of(event.step, event.task_run_id)] = said_by(event)


def said_by(event: e.WaitDone) -> str:
    """Who answered an approval, for whoever comes second (WAIT-5)."""
    given = event.result if isinstance(event.result, dict) else {}
    how = "approved" if given.get("approved") else "rejected"
    return f"{how} by {given.get('by') or 'somebody'} at {given.get('at')}"


def _signal_received(execution: Execution, event: e.SignalReceived, _: Plan) -> None:
    if event.signal_id is not None:
        execution.signal_ids[event.signal_id] = None
        if len(execution.signal_ids) > REMEMBERED:
            del execution.signal_ids[next(iter(execution.signal_ids))]
    if event.kept:
        signal = KeptSignal(
            signal=event.signal, data=event.content, sender=event.sender, at=execution.now
        )
        execution.signals.append(signal)


def _ctx_patched(execution: Execution, event: e.CtxPatched, plan: Plan) -> None:
    before = execution.ctx
    execution.ctx = {**before, **event.patch}
    run = execution.runs.get(event.step_run_id) if event.step_run_id else None
    if run is None or (run.loop is not None and run.loop.mode == "parallel"):
        return
    reduce = plan.executor.reduce
    if reduce:  # SCOPE-6: a run does not see what its own writes were folded into
        patch = {key: value for key, value in event.patch.items() if key not in reduce}
        run.ctx = {**run.ctx, **patch}
    else:
        run.ctx = execution.ctx if run.ctx is before else {**run.ctx, **event.patch}


def _loop_started(execution: Execution, event: e.LoopStarted, plan: Plan) -> None:
    run = execution.runs[event.step_run_id]
    if event.parent_id is not None:
        run.parts[event.part].taken += 1
    begin_loop(execution, run, event, plan.steps[run.step])


def _iteration_started(execution: Execution, event: e.IterationStarted, plan: Plan) -> None:
    run = execution.runs[event.step_run_id]
    run.parts[event.part].taken += 1
    begin_iteration(run, event, plan.steps[run.step])


def _iteration_ended(
    execution: Execution, event: e.IterationDone | e.IterationFailed, plan: Plan
) -> None:
    run = execution.runs[event.step_run_id]
    progress(execution, run.parts[event.part])
    end_iteration(execution, run, event, plan.steps[run.step])


def step_done(execution: Execution, event: e.StepDone | e.LoopDone, plan: Plan) -> None:
    if type(event) is e.LoopDone:
        if event.parent_id is not None:
            execution.runs[event.step_run_id].parts[event.part].taken += 1
            return  # a nested loop's end is settled by its task (LOOP-7)
        result, execution.errors_passed = event.results, execution.errors_passed + event.failed
    else:
        result = cast(e.StepDone, event).result
    execution.runs.pop(event.step_run_id)
    execution.tallies[event.step].status = "done"
    if plan.steps[event.step].router is not None:
        execution.ending = (event.step, result, None)
    elif event.step != plan.final:
        execution.leaves[event.step] = result


def _step_failed(execution: Execution, event: e.StepFailed, plan: Plan) -> None:
    execution.runs.pop(event.step_run_id)
    tally = execution.tallies[event.step]
    tally.failed += 1
    tally.status = "cancelled" if event.error.get("kind") == "cancelled" else "failed"
    if plan.steps[event.step].router is None:
        _fail(execution, event.step, event.error)
    else:
        execution.ending = (event.step, event.result, event.error)


def next_evaluated(execution: Execution, event: e.NextEvaluated, _: Plan) -> None:
    ending, execution.ending = execution.ending, None
    if event.error is not None:
        _fail(execution, event.step, event.error)
    elif not event.arcs and ending is not None:
        step, result, error = ending
        if error is None:
            execution.leaves[step] = result
        else:
            _fail(execution, step, error)
    elif ending is not None and ending[2] is not None:
        execution.failures_handled += 1
        if execution.first_handled is None:
            execution.first_handled = Failure(ending[0], ending[2])


def _fail(execution: Execution, step: str, error: dict[str, Any]) -> None:
    """A failure that nothing took; only the first hundred are kept in full."""
    execution.failed += 1
    if len(execution.failures) < 100:
        execution.failures.append(Failure(step, error))


def _queued(execution: Execution, event: e.ExecutionQueued, _: Plan) -> None:
    execution.status = "queued"
    execution.limit_key = event.key


def _admitted(execution: Execution, event: e.ExecutionAdmitted, _: Plan) -> None:
    if execution.status == "queued":
        execution.admitted = execution.now
    execution.status = "running"
    execution.limit_key = event.key


def _paused(execution: Execution, _: e.ExecutionPaused, __: Plan) -> None:
    execution.status = "paused"
    if execution.rules >= 4:
        execution.paused_at = execution.now


def _resumed(execution: Execution, event: e.ExecutionResumed, _: Plan) -> None:
    execution.status = "running"
    if execution.paused_at is not None:
        move_clocks(execution, execution.paused_at, event.paused)
        execution.paused_at = None


def _cancelled(execution: Execution, event: e.ExecutionCancelled, _: Plan) -> None:
    execution.stop = event.by
    execution.status = "running"
    if event.error is not None:
        _fail(execution, "", event.error)


def _finished(execution: Execution, event: e.WorkflowFinished, _: Plan) -> None:
    execution.finished = True
    execution.status = event.status
    execution.error = event.error


EVOLVE: dict[type[e.Event], Evolve] = {
    e.ExecutionRequested: _requested,
    e.RequestEvaluated: _evaluated,
    e.ExecutionRestored: _restored,
    e.TokenCreated: _token_created,
    e.TokenParked: _token_parked,
    e.TokenDropped: _token_dropped,
    e.TokenAbsorbed: _token_absorbed,
    e.AdmitEvaluated: _admit_evaluated,
    e.StepScheduled: _step_scheduled,
    e.StepRestored: _step_restored,
    e.StepParked: _step_parked,
    e.TokenEnqueued: _token_enqueued,
    e.TokenClaimed: _token_claimed,
    e.StepStarted: _step_started,
    e.LeaseExpired: _lease_expired,
    e.TaskStarted: _task_started,
    e.TaskCached: _task_cached,
    e.TaskDone: _task_done,
    e.TaskSuspended: _task_suspended,
    e.WaitStarted: _wait_started,
    e.WaitDone: _wait_done,
    e.SignalReceived: _signal_received,
    e.CtxPatched: _ctx_patched,
    e.LoopStarted: _loop_started,
    e.IterationStarted: _iteration_started,
    e.IterationDone: cast(Evolve, _iteration_ended),
    e.IterationFailed: cast(Evolve, _iteration_ended),
    e.LoopDone: cast(Evolve, step_done),
    e.StepDone: cast(Evolve, step_done),
    e.StepFailed: _step_failed,
    e.NextEvaluated: next_evaluated,
    e.ExecutionQueued: _queued,
    e.ExecutionAdmitted: _admitted,
    e.ExecutionPaused: _paused,
    e.ExecutionResumed: _resumed,
    e.ExecutionCancelled: _cancelled,
    e.WorkflowFinished: _finished,
}

STILL = {e.WorkflowStarted, e.NextFired, e.PlaybookProcessed, e.WaitWithdrawn}
"""Events that change nothing but the `seq`."""

if EVOLVE.keys() ^ STILL != set(CLASSES.values()):
    raise ImportError(f"who moves the state? {(EVOLVE.keys() ^ STILL) ^ set(CLASSES.values())}")
