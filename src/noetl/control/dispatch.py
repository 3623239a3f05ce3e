"""Which commands follow from the state? The queue can be rebuilt from here at any time."""

from collections.abc import Iterable
from typing import Any

import msgspec

from noetl.control.execution import Execution, LoopRun, Part, Run, is_stopped
from noetl.control.timing import seconds_left
from noetl.messages.reference import Reference
from noetl.pipeline.frame import Frame, Iteration, TaskWait, copied, copied_iteration
from noetl.playbook.plan import Plan, StepPlan


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """The iterations of one part of a loop: `first` to `last - 1`."""

    items: Any
    """The elements from `offset` on that this part needs, or the reference to all of them."""
    offset: int = 0
    total: int
    first: int
    last: int
    ended: frozenset[int]
    """Those that have ended already."""
    active: dict[int, Iteration]
    """Those that had begun before this worker got the part."""
    failed: bool
    """Whether an iteration of the loop has failed already (LOOP-4)."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """The order to a worker: run one part of a step run, from where it stands."""

    execution_id: str
    step: str
    step_run_id: str
    part: int
    epoch: int
    args: dict[str, Any]
    ctx: dict[str, Any]
    workload: dict[str, Any]
    trace_id: str
    store: str
    due: dict[str, int]
    """Task runs that wait, and until when (ms)."""
    resumed: bool
    """Whether the run has started before, on this worker or another."""
    frame: Frame | None
    """Where the pipeline of a step without a loop stands."""
    iterations: Share | None
    """The part of a loop; None for a step without one."""
    left: float | None = None
    """Seconds that the step run may still take, as of when the command was made (TASK-10)."""
    rules: int = 1
    waits: dict[str, TaskWait] = {}
    """Task runs of this part whose wait is recorded, with what ended it (WAIT-2)."""
    losses: int = 0
    """Workers that were lost on this part since its last progress: a suspect runs alone."""


def command(
    plan: Plan, execution: Execution, run: Run, part: Part, epoch: int, *, at: int
) -> Command:
    """The command for one part. What it holds is the worker's own: the state stays untouched."""
    waits = run.suspended
    return Command(
        execution_id=execution.execution_id,
        step=run.step,
        step_run_id=run.step_run_id,
        part=part.part,
        epoch=epoch,
        args=run.args,
        ctx=run.ctx,
        workload=execution.workload,
        trace_id=execution.trace_id or execution.execution_id,
        store=execution.store,
        due={key: wait.due for key, wait in waits.items() if wait.due is not None} if waits else {},
        resumed=run.started or part.part > 0,
        frame=frame_of(run),
        iterations=None if run.loop is None else share(run.loop, part),
        left=seconds_left(plan, run, at),
        waits=waits_for(plan, run, part),
        losses=part.lost,
        rules=execution.rules,
    )


def frame_of(run: Run) -> Frame | None:
    if not run.started:
        return Frame()
    return None if run.frame is None else copied(run.frame)


def waits_for(plan: Plan, run: Run, part: Part) -> dict[str, TaskWait]:
    """The waits of what a part runs; copies, for the server's own go on changing."""
    if not plan.waits:
        return {}
    found = dict(run.waits)
    if run.loop is not None and run.loop.exec == "distributed":
        for index in range(part.first, part.last):
            if index in run.loop.active:
                found |= run.loop.active[index].waits
    return {key: msgspec.structs.replace(wait) for key, wait in found.items()}


def share(loop: LoopRun, part: Part) -> Share:
    """The iterations of a part, and what is known of those that had begun before."""
    spread = loop.exec == "distributed"
    first, last = (part.first, part.last) if spread else (loop.low, loop.total)
    mine = range(first, last)
    over = frozenset(range(first, min(loop.low, last)))
    begun = [index for index in (mine if spread else loop.active) if index in loop.active]
    # An iteration that waited has a part of its own, and is none of the others' (WAIT-2).
    away = {i for i in begun if loop.active[i].away} if spread and len(mine) > 1 else set()
    ended = (mine if spread and len(mine) < len(loop.ended) else loop.ended) if loop.ended else ()
    whole = isinstance(loop.items, Reference) or (first, last) == (0, loop.total)
    return Share(
        items=loop.items if whole else loop.items[first:last],
        offset=0 if whole else first,
        total=loop.total,
        first=first,
        last=last,
        ended=over | away | frozenset(i for i in ended if i in mine and i in loop.ended),
        active={
            index: copied_iteration(loop.active[index]) for index in begun if index not in away
        },
        failed=loop.failed > 0,
    )


def may_run_ahead(step: StepPlan) -> bool:
    """Effect barrier: what touches nothing may start before the commit of its order."""
    return not step.pipeline.effect


def runs_inline(plan: Plan, execution: Execution, run: Run) -> bool:
    """Whether the server may try to run it by itself now (decision 0040)."""
    inline = run.step in plan.inline and not run.started
    return inline and not is_stopped(execution, plan, run.step)


def due_of(run: Run, part: Part) -> int | None:
    """TASK-8: until when a part that was given back need not be taken up again (ms)."""
    if run.loop is not None or not run.suspended or part.worker is not None:
        return None
    return max((wait.due or 0) for wait in run.suspended.values()) or None


def open_parts(execution: Execution) -> Iterable[tuple[Run, Part]]:
    """Every part that somebody must run: what a new owner offers first."""
    for run in execution.runs.values():
        for part in run.parts.values():
            yield run, part
