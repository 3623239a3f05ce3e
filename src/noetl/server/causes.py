"""Why did an execution fail? The chain from its end back to the task, the rule and the line."""

from collections.abc import Iterable
from typing import Any

import msgspec

from noetl.control.execution import Execution
from noetl.messages import events as e
from noetl.playbook.model import Playbook, Step
from noetl.server.failed_tasks import FailedTask, PlaybookText, link_of
from noetl.server.trail import Trail, again_of

FEW = 10
"""Failed iterations of one loop that are told of."""


class ToleratedLoop(msgspec.Struct, frozen=True):
    """A loop that went on after failed iterations (LOOP-4)."""

    step: str
    line: int | None
    failed: int
    total: int
    first: list[tuple[int, dict[str, Any]]] = []
    """Index and error of the first that failed."""
    again: str = ""
    """What `noetl restart --from` takes to run the failed ones again: the first hundred."""


class TakingStep(msgspec.Struct, frozen=True):
    """The step that took a failure over, and how it ended."""

    step: str
    line: int | None
    """Of the arc that leads there."""
    status: str


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """The failure of a step: one that no arc took, or that was handled."""

    step: str
    error: dict[str, Any]
    step_run_id: str | None = None
    index: int | None = None
    line: int | None = None
    chain: list[FailedTask] = []
    """Outermost first: the task, then the task of its nested loop that failed."""
    taken_by: list[TakingStep] = []
    """The steps that took the failure over; none where it failed the execution."""


class Unmatched(msgspec.Struct, frozen=True, kw_only=True):
    """NEXT-5: a step at which a branch ended, since no arc matched."""

    step: str
    line: int | None
    never_ran: list[str]
    """Steps that only lie behind those arcs, in the order of the document."""


def unmatched_in(trail: Trail, playbook: Playbook) -> list[Unmatched]:
    """Where branches ended though their steps have arcs; each step once."""
    steps = {step.name: step for step in playbook.steps}
    found = []
    for name in dict.fromkeys(one.step for one in trail.ends if one.step in steps):
        behind, ahead = set[str](), [name]
        while ahead:
            router = steps[ahead.pop()].router
            fresh = (
                {arc.step for arc in router.arcs} - trail.ran.keys() - behind if router else set()
            )
            behind |= fresh
            ahead += fresh
        never_ran = [step for step in steps if step in behind]
        found.append(Unmatched(step=name, line=steps[name].place.line, never_ran=never_ran))
    return found


def causes_of(execution: Execution, trail: Trail, document: PlaybookText) -> list[Cause]:
    """One per failure that nothing took, in the order of the log."""
    return [
        cause_of(failure.step, failure.error, trail, document) for failure in execution.failures
    ]


def handled_in(trail: Trail, document: PlaybookText) -> list[Cause]:
    """One per failure that an arc took, in the order of the log, with what took it."""
    steps = {step.name: step for step in document.playbook.steps}
    return [
        run_cause(run, trail, document, [taking(arc, steps, trail) for arc in took])
        for run in trail.steps
        if (took := trail.took[run.step_run_id])
    ]


def taking(arc: e.NextFired, steps: dict[str, Step], trail: Trail) -> TakingStep:
    router = steps[arc.step].router if arc.step in steps else None
    line = router.arcs[arc.arc].place.line if router and arc.arc < len(router.arcs) else None
    status = trail.ended.get(trail.runs.get(arc.token_id, ""), "not run")
    return TakingStep(arc.to, line, status)


def cause_of(step: str, error: dict[str, Any], trail: Trail, document: PlaybookText) -> Cause:
    for run in trail.steps:
        if run.step == step and run.error == error and not trail.took[run.step_run_id]:
            return run_cause(run, trail, document, [])
    return Cause(step=step, error=error, line=line_of(step, document.playbook))


def run_cause(
    run: e.StepFailed, trail: Trail, document: PlaybookText, taken_by: list[TakingStep]
) -> Cause:
    error = run.error
    index = error.get("index") if error.get("kind") == "loop" and run.loop is not None else None
    return Cause(
        step=run.step,
        error=error,
        step_run_id=run.step_run_id,
        index=index,
        line=line_of(run.step, document.playbook),
        chain=list(chain_of(run, index, trail, document)),
        taken_by=taken_by,
    )


def line_of(step: str, playbook: Playbook) -> int | None:
    return next((one.place.line for one in playbook.steps if one.name == step), None)


def tolerated_in(trail: Trail, playbook: Playbook) -> list[ToleratedLoop]:
    return [tolerated_loop(loop, trail, playbook) for loop in trail.loops]


def tolerated_loop(loop: e.LoopDone, trail: Trail, playbook: Playbook) -> ToleratedLoop:
    failed = sorted(trail.iterations.get(loop.step_run_id, []), key=lambda one: one.index)
    return ToleratedLoop(
        loop.step,
        line_of(loop.step, playbook),
        loop.failed,
        loop.total,
        [(one.index, one.error) for one in failed[:FEW]],
        again_of(trail, loop, [one.index for one in failed]) if failed else "",
    )


def chain_of(
    run: e.StepFailed, index: int | None, trail: Trail, document: PlaybookText
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
        link = link_of(found[-1], index, document)
        yield link
        inner = link.error.get("index")
        if link.error.get("kind") != "loop" or inner is None:
            return
        index = int(inner)
        prefix = f"{link.task_run_id}.{index + 1}."
        depth = prefix.count(".")
