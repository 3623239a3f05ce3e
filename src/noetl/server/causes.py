"""Why did an execution fail? The chain from its end back to the task, the rule and the line."""

from collections.abc import Iterable
from typing import Any

import msgspec

from noetl.control.execution import Execution
from noetl.messages import events as e
from noetl.messages.codec import recorded_events
from noetl.messages.envelope import timestamp
from noetl.messages.times import called
from noetl.playbook.model import Guard, Playbook, Task
from noetl.ports.event_log import EventLog
from noetl.server.replay import rows_of

MOST = 100
"""Failures of one run that are remembered; the first one decides."""


class FailedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that failed, and the rule that let its pipeline fail."""

    task: str
    kind: str
    task_run_id: str
    attempt: int
    error: dict[str, Any]
    started_at: str | None = None
    """When the tool was called, by the clock of its worker (RFC 3339)."""
    duration_ms: int | None = None
    index: int | None = None
    """The iteration it stands in, counted from 0."""
    rule: int | None = None
    """The rule that decided, counted from 0; None where none matched or there is no policy."""
    policy: bool = False
    when: Guard | None = None
    """The guard of that rule; None for `else`."""
    line: int | None = None
    inputs: dict[str, Any] = {}
    """As the playbook has them, templates unrendered."""


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """A failure that no arc took."""

    step: str
    error: dict[str, Any]
    step_run_id: str | None = None
    index: int | None = None
    line: int | None = None
    chain: list[FailedTask] = []
    """Outermost first: the task, then the task of its nested loop that failed."""


class Trail(msgspec.Struct):
    """What the log says about failures and refusals."""

    tasks: dict[str, list[e.TaskDone]] = {}
    """Step run → the task runs that failed in it."""
    steps: list[e.StepFailed] = []
    verdicts: dict[str, e.AdmitEvaluated] = {}
    """Token → the admission's last answer."""
    dropped: list[e.TokenDropped] = []
    cancelled: e.ExecutionCancelled | None = None
    ran: set[str] = set()
    """Steps that a token fired."""
    ends: list[e.NextEvaluated] = []
    """Of steps that succeeded, and of whose arcs none matched."""


class Unmatched(msgspec.Struct, frozen=True, kw_only=True):
    """NEXT-5: a step at which a branch ended, since no arc matched."""

    step: str
    line: int | None
    never_ran: list[str]
    """Steps that only lie behind those arcs, in the order of the document."""


async def trail_of(log: EventLog, execution_id: str) -> Trail:
    trail = Trail()
    async for row in rows_of(log, execution_id):
        for event in recorded_events(execution_id, row.first, row.events):
            note(trail, event)
    return trail


def note(trail: Trail, event: e.Event) -> None:
    match event:
        case e.TaskDone(do="fail"):
            failed = trail.tasks.setdefault(event.step_run_id, [])
            if len(failed) < MOST:
                failed.append(event)
        case e.StepFailed():
            if len(trail.steps) < MOST:
                trail.steps.append(event)
        case e.AdmitEvaluated(allow=False):
            trail.verdicts[event.token_id] = event
        case e.TokenDropped():
            if len(trail.dropped) < MOST:
                trail.dropped.append(event)
        case e.ExecutionCancelled():
            trail.cancelled = event
        case e.StepScheduled():
            trail.ran.add(event.step)
        case e.ExecutionRestored(kept={"tallies": dict() as before}):
            trail.ran |= before.keys()
        case e.NextEvaluated(arcs=[], error=None) if event.on != "step.failed":
            if len(trail.ends) < MOST and trail.cancelled is None:
                trail.ends.append(event)


def unmatched_in(trail: Trail, playbook: Playbook) -> list[Unmatched]:
    """Where branches ended though their steps have arcs; each step once."""
    steps = {step.name: step for step in playbook.steps}
    found = []
    for name in dict.fromkeys(one.step for one in trail.ends if one.step in steps):
        behind, ahead = set[str](), [name]
        while ahead:
            router = steps[ahead.pop()].router
            fresh = {arc.step for arc in router.arcs} - trail.ran - behind if router else set()
            behind |= fresh
            ahead += fresh
        never_ran = [step for step in steps if step in behind]
        found.append(Unmatched(step=name, line=steps[name].place.line, never_ran=never_ran))
    return found


def causes_of(execution: Execution, trail: Trail, playbook: Playbook) -> list[Cause]:
    """One per failure that nothing took, in the order of the log."""
    return [
        cause_of(failure.step, failure.error, trail, playbook) for failure in execution.failures
    ]


def cause_of(step: str, error: dict[str, Any], trail: Trail, playbook: Playbook) -> Cause:
    line = next((one.place.line for one in playbook.steps if one.name == step), None)
    run = next((one for one in trail.steps if one.step == step and one.error == error), None)
    if run is None:
        return Cause(step=step, error=error, line=line)
    index = error.get("index") if error.get("kind") == "loop" and run.loop is not None else None
    return Cause(
        step=step,
        error=error,
        step_run_id=run.step_run_id,
        index=index,
        line=line,
        chain=list(chain_of(run, index, trail, playbook)),
    )


def chain_of(
    run: e.StepFailed, index: int | None, trail: Trail, playbook: Playbook
) -> Iterable[FailedTask]:
    """Follow the ids inwards: a nested task run's id begins with that of the task around it."""
    number = run.step_run_id.partition(".")[0]
    prefix = f"{number}." if index is None else f"{number}.{index + 1}."
    depth = prefix.count(".")
    while True:
        found = [
            done
            for done in trail.tasks.get(run.step_run_id, [])
            if done.task_run_id.startswith(prefix) and done.task_run_id.count(".") == depth
        ]
        if not found:
            return
        link = link_of(found[-1], index, playbook)
        yield link
        inner = link.error.get("index")
        if link.error.get("kind") != "loop" or inner is None:
            return
        index = int(inner)
        prefix = f"{link.task_run_id}.{index + 1}."
        depth = prefix.count(".")


def link_of(done: e.TaskDone, index: int | None, playbook: Playbook) -> FailedTask:
    error = done.error or done.outcome.get("error") or {}
    steps = {step.name: step.tasks for step in playbook.steps}
    task = find_task(steps.get(done.step, ()), done.task)
    known: dict[str, Any] = {"kind": "", "task": done.task}
    if task is not None:
        rules = task.spec.rules
        decided = rules[done.rule] if rules is not None and done.rule is not None else None
        known = {
            "task": task.label,
            "kind": task.kind,
            "inputs": task.inputs,
            "policy": rules is not None,
            "when": None if decided is None else decided.when,
            "line": (decided or task).place.line,
        }
    took = called(done.outcome)
    if took is not None:
        known |= {"started_at": timestamp(took[0]), "duration_ms": took[1] - took[0]}
    return FailedTask(
        task_run_id=done.task_run_id,
        attempt=done.attempt,
        error=error,
        index=index,
        rule=done.rule,
        **known,
    )


def find_task(tasks: Iterable[Task], label: str) -> Task | None:
    for task in tasks:
        if task.label == label:
            return task
        found = find_task(task.inner.tasks, label) if task.inner is not None else None
        if found is not None:
            return found
    return None
