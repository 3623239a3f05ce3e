"""
What ends a wait, and what follows (WAIT): a time, a signal, a person, or its timeout.

Part of `decide`: which wait takes what is settled here, by the server, in one place.
"""

from typing import Any

import msgspec

from noetl.control.deciding import Deciding
from noetl.control.execution import Execution, KeptSignal, Run, is_stopped
from noetl.control.loops import end_early, offer, value_of
from noetl.control.waits_held import (
    WAITS,
    find_wait,
    has_let_go,
    index_at,
    iteration_at,
    pending,
    waits_at,
)
from noetl.errors import TemplateFailed
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.envelope import timestamp
from noetl.messages.outcome import make_error
from noetl.messages.places import index_in
from noetl.messages.reference import Reference
from noetl.pipeline.frame import TaskWait
from noetl.pipeline.policy import template_error
from noetl.playbook.plan import Scope, TaskPlan

KEPT = 1_000
"""Signals that an execution keeps for waits that have not begun (WAIT-4)."""

Arm = dict[str, Any]


# ── what workers tell ────────────────────────────────────────────────────────────────────────


def take_wait_started(deciding: Deciding, run: Run, event: e.WaitStarted) -> None:
    """WAIT-3: durations begin now, by the server's clock; what is due or came already ends it."""
    now = deciding.execution.now
    awaits = [
        {**arm, "due": now + round(arm["seconds"] * 1000)} if "seconds" in arm else arm
        for arm in event.awaits
    ]
    due = None if event.timeout is None else now + round(event.timeout * 1000)
    deciding.emit(msgspec.structs.replace(event, awaits=awaits, due=due))
    wait = waits_at(run, event.task_run_id)[event.task_run_id]
    if not expire(deciding, run, wait):
        take_kept(deciding, run, wait)


def take_suspended(deciding: Deciding, run: Run, event: e.TaskSuspended) -> None:
    """Everything of the run, or of the iteration, waits; what came meanwhile goes on at once."""
    deciding.emit(event)
    if event.reason != WAITS:
        return
    if is_stopped(deciding.execution, deciding.plan, run.step):
        stop_run(deciding, run)
        return
    if any(wait.done is not None for wait in waits_at(run, event.task_run_id).values()):
        wake(deciding, run, event.task_run_id)


# ── what ends a wait ─────────────────────────────────────────────────────────────────────────


def take_due(deciding: Deciding, given: r.WaitsDue) -> None:
    for run_id, task_run_id in given.waits:
        wait = find_wait(deciding.execution, run_id, task_run_id)
        if wait is not None and wait.done is None:
            expire(deciding, deciding.execution.runs[run_id], wait)


def next_due(wait: TaskWait) -> int | None:
    """When the first of its clocks runs out (ms)."""
    times = [arm["due"] for arm in wait.awaits if "due" in arm]
    if wait.due is not None:
        times.append(wait.due)
    return min(times, default=None)


def expire(deciding: Deciding, run: Run, wait: TaskWait) -> bool:
    """End a wait whose time has come; while the execution is paused no clock moves (WAIT-6)."""
    execution, due = deciding.execution, next_due(wait)
    if due is None or due > execution.now or execution.status == "paused":
        return False
    for arm in wait.awaits:
        if arm.get("due") == due:
            finish(deciding, run, wait, e.WaitDone(**ids_of(wait), by="timer", **label_of(arm)))
            return True
    what = " or ".join(words_of(arm) for arm in wait.awaits)
    seconds = (due - wait.since) / 1000
    error = make_error("timeout", f"{what} did not come within {seconds:g} s")
    finish(deciding, run, wait, e.WaitDone(**ids_of(wait), by="timeout", error=error))
    return True


def send_signal(deciding: Deciding, given: r.SendSignal) -> None:
    """WAIT-4: the oldest wait that wants it takes it, else it is kept."""
    execution = deciding.execution
    if refusal_of_signal(execution, given) is not None:
        return
    received = deciding.fit(
        e.SignalReceived(
            signal=given.signal,
            content=given.data,
            sender=given.sender,
            signal_id=given.signal_id,
            kept=True,
        )
    )
    signal = KeptSignal(
        signal=given.signal, data=received.content, sender=given.sender, at=execution.now
    )
    wanting = [  # `arms_for`, without a call for each of thousands of waits
        (wait, arm)
        for wait in pending(execution)
        for arm in wait.awaits
        if arm["by"] == "signal" and arm["name"] == given.signal
    ]
    for wait, arm in sorted(wanting, key=lambda found: found[0].seq):
        run = execution.runs[wait.step_run_id]
        answer = taken_by(deciding, run, wait, arm, signal)
        if answer is not None:
            deciding.emit(msgspec.structs.replace(received, kept=False))
            finish(deciding, run, wait, answer)
            return
    deciding.emit(received)


def refusal_of_signal(execution: Execution, given: r.SendSignal) -> str | None:
    """Why a signal is not taken; None where it is."""
    if was_sent(execution, given):
        return f"a signal with the id '{given.signal_id}' came before"
    if not execution.stop and len(execution.signals) < KEPT:
        return None  # as nearly always, and without a look at what may be thousands of waits
    awaited = any(arms_for(wait, given.signal) for wait in pending(execution))
    if awaited:  # the final step may wait for it (NEXT-6)
        return None
    if execution.stop:
        return f"the execution stops ({execution.stop}): nothing will take it"
    return (
        f"nothing waits for '{given.signal}' now, and {KEPT:,} signals are kept already, as many "
        "as an execution keeps"
    )


def was_sent(execution: Execution, given: r.SendSignal) -> bool:
    """The same id twice is one signal (WAIT-4)."""
    return given.signal_id is not None and given.signal_id in execution.signal_ids


def arms_for(wait: TaskWait, signal: str) -> list[Arm]:
    return [arm for arm in wait.awaits if arm["by"] == "signal" and arm["name"] == signal]


def take_kept(deciding: Deciding, run: Run, wait: TaskWait) -> None:
    """A signal that came before its wait (WAIT-4): the oldest that it wants."""
    signals = deciding.execution.signals
    for number, signal in enumerate(signals):
        for arm in arms_for(wait, signal.signal):
            answer = taken_by(deciding, run, wait, arm, signal)
            if answer is not None:
                finish(deciding, run, wait, msgspec.structs.replace(answer, kept=number))
                return


def taken_by(
    deciding: Deciding, run: Run, wait: TaskWait, arm: Arm, signal: KeptSignal
) -> e.WaitDone | None:
    """What comes of the wait, if it wants the signal. A guard that fails ends it (TPL-3)."""
    fields: dict[str, Any] = {**ids_of(wait), "by": "signal", **label_of(arm)}
    if arm.get("guarded"):
        guard = task_of(deciding, run, wait).guards[arm.get("label", "")]
        try:
            scope = scope_of(deciding, run, wait, signal)
            if not deciding.evaluate(guard, scope):
                return None
        except TemplateFailed as fault:
            error = template_error(fault, f"`when` of task '{wait.task}'")
            return e.WaitDone(**fields, error=error)
    return e.WaitDone(**fields, result=signal.data)


def answer_approval(deciding: Deciding, given: r.AnswerApproval) -> None:
    """WAIT-5. A second answer finds nothing that waits."""
    for wait in pending(deciding.execution):
        if wait.task_run_id != given.task_run_id or given.asked not in (None, wait.seq):
            continue
        for arm in wait.awaits:
            if arm["by"] == "approval" and arm.get("label", "") == given.label:
                result = {
                    **given.fields,
                    "approved": given.approved,
                    "by": given.sender,
                    "at": timestamp(deciding.execution.now),
                    "reason": given.reason,
                }
                done = e.WaitDone(**ids_of(wait), by="approval", **label_of(arm), result=result)
                finish(deciding, deciding.execution.runs[wait.step_run_id], wait, done)
        return


def finish(deciding: Deciding, run: Run, wait: TaskWait, done: e.WaitDone) -> None:
    """Record what came and what is withdrawn, and offer what goes on with it."""
    waited = max(0, deciding.execution.now - wait.since)
    deciding.make(msgspec.structs.replace(done, waited=waited))
    lost = [arm["label"] for arm in wait.awaits if arm.get("label", "") != done.label]
    if lost:
        deciding.emit(e.WaitWithdrawn(**ids_of(wait), labels=lost))
    if has_let_go(run, wait.task_run_id):
        wake(deciding, run, wait.task_run_id)


def wake(deciding: Deciding, run: Run, task_run_id: str) -> None:
    """Offer a part with what waited: any worker goes on from the recorded frame (WAIT-2)."""
    index = None if iteration_at(run, task_run_id) is None else index_at(task_run_id)
    span: dict[str, Any] = {} if index is None else {"first": index, "last": index + 1}
    pool = deciding.plan.executor.pool
    deciding.emit(e.TokenEnqueued(**run.ids, pool=pool, part=run.next_part, **span))


# ── runs that are stopped while they wait ────────────────────────────────────────────────────


STOPPED = make_error("cancelled", "it was stopped while it waited")


def stop_waiting(deciding: Deciding) -> None:
    """NEXT-8: of runs of which everything waits nobody else would tell the end."""
    for run in list(deciding.execution.runs.values()):
        if not run.parts and is_stopped(deciding.execution, deciding.plan, run.step):
            stop_run(deciding, run)


def stop_run(deciding: Deciding, run: Run) -> None:
    plan = deciding.plan.steps[run.step].loop
    if plan is not None and run.loop is not None and run.loop.exec == "distributed":
        offer(deciding, run, plan)
    else:
        end_early(deciding, run, STOPPED, deciding.own)


# ── what is told of a wait, and what its guards see ──────────────────────────────────────────


def ids_of(wait: TaskWait) -> dict[str, Any]:
    return {
        "step": wait.step,
        "step_run_id": wait.step_run_id,
        "task_run_id": wait.task_run_id,
        "task": wait.task,
    }


def label_of(arm: Arm) -> dict[str, Any]:
    about = arm.get("name") or arm.get("title")
    named = {"about": about} if about else {}
    return {"label": arm["label"], **named} if "label" in arm else named


def words_of(arm: Arm) -> str:
    """What is awaited, in words."""
    match arm["by"]:
        case "signal":
            return f"signal '{arm['name']}'"
        case "approval":
            return f"an answer to '{arm['title']}'"
    return timestamp(arm["due"]) if "due" in arm else f"{arm['seconds']:g} s"


def task_of(deciding: Deciding, run: Run, wait: TaskWait) -> TaskPlan:
    if wait.lent is not None:
        return deciding.plan.workbook[wait.lent]
    pipeline = deciding.plan.steps[run.step].pipeline
    return next(
        task for task in all_tasks(pipeline.tasks) if task.label == wait.task and task.guards
    )


def all_tasks(tasks: tuple[TaskPlan, ...]) -> list[TaskPlan]:
    """The tasks of a pipeline and of the loops inside it."""
    found = list(tasks)
    for task in tasks:
        if task.inner is not None:
            found += all_tasks(task.inner.pipeline.tasks)
    return found


def scope_of(deciding: Deciding, run: Run, wait: TaskWait, signal: KeptSignal) -> Scope:
    """
    What the pipeline saw when it began to wait, its `iter` too, from the recorded frames. `signal`
    is found as a bare name is, in `args` first (TPL-2): it is no namespace of its own, which would
    take the name from playbooks that have one.
    """
    numbers = wait.task_run_id.split(".")
    step = deciding.plan.steps[run.step]
    iter_: dict[str, Any] = {}
    if run.loop is None:
        assert run.frame is not None, "a run without a loop has a frame"
        frame, rest = run.frame, numbers[2:]
        iter_ = dict(frame.iter)
    else:
        assert step.loop is not None, "only a step with a loop has iterations"
        index = int(numbers[1]) - 1
        frame, rest = run.loop.active[index].frame, numbers[3:]
        iter_ = bound(deciding, step.loop.iterator, run.loop.items, index, frame.iter)
    pipeline = step.pipeline
    while rest:
        inner = pipeline.tasks[frame.pc].inner
        assert inner is not None, "only an iterator task has iterations"
        assert frame.inner is not None, "the loop has started"
        index = index_in(rest[0])
        items, frame = frame.inner.items, frame.inner.active[index].frame
        own = bound(deciding, inner.loop.iterator, items, index, frame.iter)
        iter_ = {**own, "parent": iter_}
        pipeline, rest = inner.pipeline, rest[2:]
    args = {**run.args, "signal": signal.seen}
    return {**deciding.scope(args), "ctx": run.ctx, "iter": iter_, "_prev": frame.prev}


def bound(
    deciding: Deciding, iterator: str, items: Any, index: int, written: dict[str, Any]
) -> dict[str, Any]:
    """LOOP-1: what an iteration sees of its element."""
    values = value_of(deciding, items) if isinstance(items, Reference) else items
    return {iterator: values[index], "index": index, **written}
