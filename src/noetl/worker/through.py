"""The fast lane: a pipeline that waits for nothing, run in one go."""

import random
import time
from typing import Any

from noetl.control.execution import Execution, Run
from noetl.errors import TakesLong
from noetl.expression.lookup import BODIES
from noetl.expression.meter import METER, Meter
from noetl.messages import events as e
from noetl.messages.fitting import is_small
from noetl.pipeline.drive import End, Surroundings, run_pipeline
from noetl.pipeline.frame import Frame
from noetl.playbook.plan import Plan

SMALL = 100_000
"""Bytes, roughly: larger values are looked at more closely than this lane does."""

MOST = 1_000
"""Task runs in one go: nothing else is decided meanwhile, so one that jumps on is a worker's."""


class TooLarge(Exception):
    """A value belongs outside the log: a worker must run this one."""


def run_through(plan: Plan, execution: Execution, run: Run, worker: str) -> list[e.Event] | None:
    """
    All that a fresh run of a pipeline without effect comes to, its end included.

    None when it would have to wait for something: nothing has happened then, and the run can
    begin anew in the ordinary way.
    """
    executor = plan.executor
    folds = bool(executor.reduce)  # a write must be settled (SCOPE-6)
    if folds or executor.reference_first or executor.limits.max_payload_bytes < 2 * SMALL:
        return None
    if run.step in plan.idle:
        return passed_through(plan, execution, run, worker)
    step, run_id, execution_id = run.step, run.step_run_id, execution.execution_id
    events: list[e.Event] = [e.StepStarted(step=step, step_run_id=run_id)]
    around = Surroundings(
        plan=plan,
        step=step,
        step_run_id=run_id,
        worker=worker,
        trace_id=execution.trace_id or execution_id,
        now=time.time,
        chance=random.random,
        fit=_Small(),
    )
    scope: dict[str, Any] = {
        "workload": execution.workload,
        "ctx": run.ctx,
        "args": run.args,
        "iter": {},
        "execution_id": execution_id,
        BODIES: {},
        METER: Meter(shared=True, hurried=True),
    }
    prefix = run_id.partition(".")[0]
    driven = run_pipeline(plan.steps[step].pipeline, Frame(), scope, prefix, around, events)
    try:
        driven.send(None)
    except StopIteration as stop:
        end: End = stop.value
    except (TooLarge, TakesLong):
        return None
    else:
        driven.close()
        return None
    if end.error is not None:
        events.append(e.StepFailed(step=step, step_run_id=run_id, error=end.error))
    else:
        events.append(e.StepDone(step=step, step_run_id=run_id, result=end.result))
    return events


def passed_through(plan: Plan, execution: Execution, run: Run, worker: str) -> list[e.Event]:
    """What `run_pipeline` comes to where every task is a `noop` that no rule looks at."""
    step, run_id = run.step, run.step_run_id
    trace_id, prefix = execution.trace_id or execution.execution_id, run_id.partition(".")[0]
    at = int(time.time() * 1000)
    events: list[e.Event] = [e.StepStarted(step=step, step_run_id=run_id)]
    for number, task in enumerate(plan.steps[step].pipeline.tasks, 1):
        task_run_id = f"{prefix}.{number}"
        meta = {
            "attempt": 1,
            "started_at": at,
            "duration_ms": 0,
            "task_run_id": task_run_id,
            "trace_id": trace_id,
            "worker": worker,
        }
        outcome = {"status": "ok", "result": None, "error": None, "meta": meta}
        events += (
            e.TaskStarted(
                step=step,
                step_run_id=run_id,
                task_run_id=task_run_id,
                task=task.label,
                kind=task.kind,
            ),
            e.TaskDone(
                step=step,
                step_run_id=run_id,
                task_run_id=task_run_id,
                task=task.label,
                outcome=outcome,
            ),
        )
    events.append(e.StepDone(step=step, step_run_id=run_id))
    return events


class _Small:
    """Passes on outcomes of few task runs, as long as they are small."""

    def __init__(self) -> None:
        self._left = MOST

    def __call__(self, done: e.TaskDone) -> e.TaskDone:
        self._left -= 1
        if self._left < 0:
            raise TakesLong
        # What no rule has written, `noop` has only passed on.
        new = done.rule is not None or done.outcome["error"] is not None
        if new and not is_small(done, SMALL):
            raise TooLarge
        return done
