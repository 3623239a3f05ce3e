"""
How a pipeline runs, told as a generator: what it asks for is data, what it does is append events.

The driver calls no tool and reads no clock. It yields what it needs (a tool call, a pause, a
body, a nested loop, the server's word on a write) to whoever drives it and goes on with the
answer. A worker drives it with real tools, a test with canned outcomes; a pipeline of few `noop`
alone asks for nothing and runs through.
"""

from collections.abc import Callable, Generator
from typing import Any

import msgspec

from noetl.errors import NeedsBody, TemplateFailed
from noetl.messages.events import Event, TaskCached, TaskDone, TaskStarted
from noetl.messages.outcome import CacheHit, Outcome, failed, make_error
from noetl.pipeline.advance import FAILED, advance, failure_of
from noetl.pipeline.asks import (
    Ask,
    AwaitAnswer,
    Breathe,
    CallTool,
    FindKept,
    Load,
    Pause,
    RunLoop,
    Settle,
)
from noetl.pipeline.frame import Frame, TaskWait
from noetl.pipeline.policy import GO_ON, PolicyVerdict, judge, seconds_in, template_error
from noetl.playbook.caching import kept_as
from noetl.playbook.model import TaskSpec, Timeout
from noetl.playbook.plan import LoopPlan, Pipeline, Plan, Scope, TaskPlan

KEPT = ("continue", "jump", "break")
"""Directives after which an ok outcome is kept (CACHE-1): the others say that it was not good."""

BREATH = 100
"""Task runs of one pipeline that may go by without a wait."""
BREATHE = Breathe()

NO_ANSWER = Outcome(status="ok")
"""Of a task that calls nothing."""


class End(msgspec.Struct, frozen=True):
    """How a pipeline ended: its last value, or why it failed."""

    result: Any
    error: dict[str, Any] | None


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What is the same for every task of a part."""

    plan: Plan
    step: str
    step_run_id: str
    worker: str
    trace_id: str
    now: Callable[[], float]
    """Seconds since 1970; the clock comes in through the door."""
    chance: Callable[[], float]
    fit: Callable[[TaskDone], TaskDone]
    """The event as it may be recorded: what is too large for the log by reference (EVT-4)."""
    conceal: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """The outcome as rules may see it: secrets are sealed (KEY-3), results outside (RES-1)."""
    part: int = 0
    reduced: frozenset[str] = frozenset()
    """ctx keys that a loop around folds: what is written there is seen when it ends (LOOP-5)."""
    loops: tuple[LoopPlan, ...] = ()
    """The loops around the pipeline, inner first."""
    settles: bool = False
    """Whether writes to ctx must be settled by the server before the pipeline goes on."""
    due: dict[str, int] = {}
    """Task runs in a pause that an earlier worker had begun, and until when (ms)."""
    waits: dict[str, TaskWait] = {}
    """Task runs whose wait is recorded, with what ended it if that has come (WAIT-2)."""


def run_pipeline(
    pipeline: Pipeline,
    frame: Frame,
    scope: Scope,
    prefix: str,
    around: Surroundings,
    events: list[Event],
    writes: list[tuple[str, Any]] | None = None,
) -> Generator[Ask, Any, End]:
    """
    Run from where the frame stands to the end; events are appended as they happen.

    `writes` collects what a nested iteration gives to the reducers around it (LOOP-7).
    """
    tasks, limit = pipeline.tasks, around.plan.limits.max_task_runs
    if frame.over or not tasks:  # TASK-9: its end was not recorded; TASK-6: it only routes
        return End(None if frame.error else frame.prev, frame.error)
    if around.due:
        yield from sleep_out(tasks[frame.pc], prefix, frame, around)
    while True:
        if (frame.ordinal + frame.attempt) % BREATH == 0:
            yield BREATHE
        task = tasks[frame.pc]
        task_run_id, attempt = f"{prefix}.{frame.ordinal}", frame.attempt
        if frame.ordinal > limit:
            return End(None, over_limit(limit))
        scope["_prev"], scope["_task"], scope["_attempt"] = frame.prev, task.label, attempt
        began = around.now()
        if around.waits and task_run_id in around.waits:  # it goes on after its wait
            began = around.waits[task_run_id].since / 1000
        else:
            events.append(started(task, task_run_id, attempt, around))
        if task.kind == "noop":  # SCOPE-3: it passes `_prev` through
            outcome: dict[str, Any] = {"status": "ok", "result": frame.prev, "error": None}
            took, answer = 0, NO_ANSWER
        else:
            run = invoke if task.cache is None else look_first
            answer = yield from run(task, task, scope, frame, task_run_id, attempt, around)
            outcome = recorded(answer, task, around.conceal)
            took = max(0, round((around.now() - began) * 1000))  # the clock may be set back
        outcome["meta"] = meta(attempt, began, took, task_run_id, around)
        if answer.hit is not None:
            events.append(from_cache(answer.hit, task, task_run_id, outcome, around))
        plain = task.choose is None and outcome["status"] == "ok"  # TASK-2
        verdict = GO_ON if plain else (yield from weigh(task, scope, outcome, attempt, around))
        done = settled(task, verdict, outcome, answer, task_run_id, attempt, around)
        if answer.keep is not None and done.do in KEPT:
            done = msgspec.structs.replace(done, cache=answer.keep)
        if not (answer is NO_ANSWER and plain and frame.prev is None):  # else it carries nothing
            done = around.fit(done)
        events.append(done)
        if done.set_ctx or answer.passed:
            done = yield from write(done, scope, around, writes, answer.passed)
        if done.set_iter:
            scope["iter"] = {**scope["iter"], **done.set_iter}
        ended = advance(frame, done, pipeline)
        if ended is not None:
            return End(None, failure_of(done)) if ended == FAILED else End(frame.prev, None)
        if done.delay:  # what waits is the task run that comes next
            yield pause(done.delay, tasks[frame.pc], prefix, frame, done.do)


def started(task: TaskPlan, task_run_id: str, attempt: int, around: Surroundings) -> TaskStarted:
    return TaskStarted(
        step=around.step,
        step_run_id=around.step_run_id,
        task_run_id=task_run_id,
        task=task.label,
        kind=task.kind,
        attempt=attempt,
        part=around.part,
    )


def meta(
    attempt: int, began: float, took: int, task_run_id: str, around: Surroundings
) -> dict[str, Any]:
    """OUT-1."""
    return {
        "attempt": attempt,
        "started_at": int(began * 1000),
        "duration_ms": took,
        "task_run_id": task_run_id,
        "trace_id": around.trace_id,
        "worker": around.worker,
    }


def pause(seconds: float, task: TaskPlan, prefix: str, frame: Frame, reason: str) -> Pause:
    return Pause(seconds, task.label, f"{prefix}.{frame.ordinal}", reason, frame.attempt)


def sleep_out(
    task: TaskPlan, prefix: str, frame: Frame, around: Surroundings
) -> Generator[Ask, Any, None]:
    """Wait for the rest of a pause that an earlier worker had begun (TASK-8)."""
    due = around.due.get(f"{prefix}.{frame.ordinal}")
    if due is not None:
        seconds = max(0.0, due / 1000 - around.now())
        yield pause(seconds, task, prefix, frame, "resumed")


def weigh(
    task: TaskPlan, scope: Scope, outcome: dict[str, Any], attempt: int, around: Surroundings
) -> Generator[Ask, Any, PolicyVerdict]:
    """Judge the outcome by the task's rules; `outcome` is in scope for nothing else (TPL-2)."""
    scope["outcome"] = outcome
    while True:
        try:
            verdict = judge(task, scope, attempt=attempt, chance=around.chance)
            break
        except NeedsBody as need:
            lost = yield Load(need.reference)
            if lost:
                verdict = PolicyVerdict(do="fail", error=failed("result", lost).error)
                break
    del scope["outcome"]
    return verdict


def write(
    done: TaskDone,
    scope: Scope,
    around: Surroundings,
    writes: list[tuple[str, Any]] | None,
    passed: list[tuple[str, Any]] | None,
) -> Generator[Ask, Any, TaskDone]:
    """Settle a write to ctx where iterations may collide, and let the run see its own (SCOPE-4)."""
    if writes is not None and passed:
        writes.extend(passed)
    if around.settles and done.set_ctx:
        done = yield Settle(done)
    if done.set_ctx:
        scope["ctx"] = {**scope["ctx"], **seen(done.set_ctx, around)}
        if writes is not None:
            writes.extend(pair for pair in done.set_ctx.items() if pair[0] in around.reduced)
    return done


def seen(writes: dict[str, Any], around: Surroundings) -> dict[str, Any]:
    """A run's own writes that it sees at once (SCOPE-4): not those that are folded."""
    reduced, folded = around.reduced, around.plan.executor.reduce
    if not reduced and not folded:
        return writes
    return {k: value for k, value in writes.items() if k not in reduced and k not in folded}


def settled(
    task: TaskPlan,
    verdict: PolicyVerdict,
    outcome: dict[str, Any],
    answer: Outcome,
    task_run_id: str,
    attempt: int,
    around: Surroundings,
) -> TaskDone:
    """The outcome and what follows from it: all that resuming needs is in the event (TASK-9)."""
    if verdict is GO_ON and not answer.writes:
        return TaskDone(
            step=around.step,
            step_run_id=around.step_run_id,
            task_run_id=task_run_id,
            task=task.label,
            attempt=attempt,
            part=around.part,
            outcome=outcome,
        )
    writes = {**(answer.writes or {}), **verdict.set_ctx}
    return TaskDone(
        step=around.step,
        step_run_id=around.step_run_id,
        task_run_id=task_run_id,
        task=task.label,
        attempt=attempt,
        part=around.part,
        outcome=outcome,
        rule=verdict.rule,
        do=verdict.do,
        to=verdict.to,
        delay=verdict.delay,
        set_iter=verdict.set_iter,
        set_ctx=writes,
        set_prev=verdict.set_prev,
        error=None if verdict.error is outcome["error"] else verdict.error,
        inputs=answer.inputs,
    )


def invoke(
    task: TaskPlan,
    called: TaskPlan,
    scope: Scope,
    frame: Frame,
    task_run_id: str,
    attempt: int,
    around: Surroundings,
) -> Generator[Ask, Any, Outcome]:
    """Render the inputs and ask for the call. `called` differs from `task` for a workbook's."""
    if called.inner is not None:
        outcome: Outcome = yield RunLoop(called, task_run_id, frame, scope, around.loops)
        return outcome
    # Taken out: the attempt that comes after this one begins a wait of its own (TASK-3).
    wait = around.waits.pop(task_run_id, None) if called.kind == "wait" else None
    if wait is not None:
        return came(wait) or (yield AwaitAnswer(task.label, task_run_id, attempt))
    while True:
        try:
            inputs = called.render(scope)
            if called.timeout is not None:
                called = timed(called, called.timeout(scope))
            break
        except NeedsBody as need:
            lost = yield Load(need.reference)
            if lost:
                return failed("result", lost)
        except TemplateFailed as fault:
            error = template_error(fault, f"an input of task '{task.label}'")
            return Outcome(status="error", error=error)
    if called.kind == "workbook":
        return (yield from borrow(task, inputs, scope, frame, task_run_id, attempt, around))
    if called.kind == "noop":
        return Outcome(status="ok", result=frame.prev)
    if called.kind == "wait":
        return (yield from wait_for(task, called, inputs, task_run_id, attempt))
    outcome = yield CallTool(called, inputs, task_run_id, attempt)
    return outcome


def look_first(
    task: TaskPlan,
    called: TaskPlan,
    scope: Scope,
    frame: Frame,
    task_run_id: str,
    attempt: int,
    around: Surroundings,
) -> Generator[Ask, Any, Outcome]:
    """CACHE-1: an outcome that was kept under the task's key, or a call whose outcome may be."""
    cache = task.cache
    assert cache is not None, "only tasks with a cache come here"
    while True:
        try:
            key = cache.key_in(scope)
            break
        except NeedsBody as need:
            lost = yield Load(need.reference)
            if lost:
                return failed("result", lost)
        except TemplateFailed as fault:
            error = template_error(fault, f"the key of the cache of task '{task.label}'")
            return Outcome(status="error", error=error)
    may_keep = False
    if key is not None:
        found = yield FindKept(cache.name, key, again=attempt > 1)
        if isinstance(found, CacheHit):
            return Outcome(status="ok", hit=found)
        may_keep = found
    outcome: Outcome = yield from invoke(task, called, scope, frame, task_run_id, attempt, around)
    if not may_keep or key is None or outcome.secret or outcome.status != "ok":
        return outcome
    return msgspec.structs.replace(outcome, keep={"task": cache.name, "key": kept_as(key)})


def from_cache(
    hit: CacheHit,
    task: TaskPlan,
    task_run_id: str,
    outcome: dict[str, Any],
    around: Surroundings,
) -> TaskCached:
    """The event that says whose outcome it is; rules and people see it in `meta.cached` too."""
    outcome["meta"]["cached"] = {"execution_id": hit.execution_id, "at": hit.at}
    return TaskCached(
        step=around.step,
        step_run_id=around.step_run_id,
        task_run_id=task_run_id,
        task=task.label,
        part=around.part,
        key=hit.key,
        from_execution_id=hit.execution_id,
        kept_at=hit.at,
    )


def timed(task: TaskPlan, value: Any) -> TaskPlan:
    """TASK-7: the task with the timeout that its template came to."""
    timeout = Timeout(total=seconds_in("timeout", value))
    return msgspec.structs.replace(task, spec=msgspec.structs.replace(task.spec, timeout=timeout))


def wait_for(
    task: TaskPlan, called: TaskPlan, inputs: dict[str, Any], task_run_id: str, attempt: int
) -> Generator[Ask, Any, Outcome]:
    """WAIT-1. A time that is none, or a form that no one could fill in, is an error of `input`."""
    from noetl.kinds.awaited import awaited  # few playbooks wait

    try:
        awaits, timeout = awaited(inputs, called.guards)
    except ValueError as fault:
        return failed("input", f"task '{task.label}': {fault}")
    total = called.spec.timeout.total if called.spec.timeout is not None else None
    outcome: Outcome = yield AwaitAnswer(
        task.label,
        task_run_id,
        attempt,
        awaits,
        timeout=timeout if timeout is not None else total,
        lent=called.label if called is not task else None,
        call=CallTool(called, inputs, task_run_id, attempt),
    )
    return outcome


def came(wait: TaskWait) -> Outcome | None:
    """The outcome of a wait that is over (WAIT-5); None while it is not."""
    done = wait.done
    if done is None:
        return None
    block = {
        "by": done.by,
        "name": done.about or None,
        "label": done.label or None,
        "waited": done.waited / 1000,
    }
    status: Any = "ok" if done.error is None else "error"
    return Outcome(status=status, result=done.result, error=done.error, block=block)


def borrow(
    task: TaskPlan,
    inputs: dict[str, Any],
    scope: Scope,
    frame: Frame,
    task_run_id: str,
    attempt: int,
    around: Surroundings,
) -> Generator[Ask, Any, Outcome]:
    """TOOL-2: the workbook's task, with `args` bound."""
    name = inputs.get("name")
    found = around.plan.workbook.get(name) if isinstance(name, str) else None
    if found is None:
        known = ", ".join(sorted(around.plan.workbook)) or "none"
        return failed("not_found", f"the workbook has no task {name!r}; it has: {known}")
    bound = {**scope, "args": inputs.get("args") or {}}
    timeout = task.timeout or (None if task.spec.timeout else found.timeout)
    found = msgspec.structs.replace(found, spec=knobs(task.spec, found.spec), timeout=timeout)
    outcome = yield from invoke(task, found, bound, frame, task_run_id, attempt, around)
    block_name = outcome.block_name or found.block or found.kind
    lent = {"task": name, "kind": found.kind}
    return msgspec.structs.replace(outcome, block_name=block_name, lent=lent)


def knobs(caller: TaskSpec, lent: TaskSpec) -> TaskSpec:
    """The knobs of a workbook's task; those that its caller sets win."""
    given = {field: getattr(caller, field) for field in TaskSpec.__struct_fields__}
    wins = {field: value for field, value in given.items() if value and field != "rules"}
    resources = {**lent.resources, **caller.resources}
    return msgspec.structs.replace(lent, **{**wins, "rules": None, "resources": resources})


def recorded(
    outcome: Outcome,
    task: TaskPlan,
    conceal: Callable[[dict[str, Any]], dict[str, Any]] | None,
) -> dict[str, Any]:
    """The outcome as rules see it and the log keeps it; what has no value is absent (OUT-2)."""
    if outcome.hit is not None:
        return dict(outcome.hit.outcome)
    named = {"status": outcome.status, "result": outcome.result, "error": outcome.error}
    if conceal is not None:
        named = conceal(named)
    if outcome.block is not None:
        block = {key: value for key, value in outcome.block.items() if value is not None}
        named[outcome.block_name or task.block or task.kind] = block
    if outcome.lent is not None:
        named["workbook"] = outcome.lent
    return named


def over_limit(limit: int) -> dict[str, Any]:
    return make_error(
        "limit",
        f"more than {limit} task runs in one pipeline: a jump without end?"
        " (executor.spec.policy.limits.max_task_runs)",
    )
