"""Which commands follow from the state? The queue can be rebuilt from here at any time."""

import copy
from collections.abc import Iterable
from typing import Any

import msgspec

from noetl.control.execution import Execution, Leg, Run
from noetl.messages import events as e
from noetl.pipeline.frame import Frame, Iteration


class RunLeg(msgspec.Struct, frozen=True, kw_only=True):
    """The order to a worker: run one leg of a step run, from where it stands."""

    execution_id: str
    step: str
    step_run_id: str
    leg: int
    epoch: int
    args: dict[str, Any]
    ctx: dict[str, Any]
    workload: dict[str, Any]
    trace_id: str
    store: str
    resumed: bool = False
    """Whether the run has started before, on this worker or another."""
    frame: Frame | None = None
    """Where the pipeline stands; None for a loop."""
    items: Any = None
    """The loop's collection, or the reference to it."""
    total: int = 0
    first: int = 0
    last: int = 0
    """The iterations of this leg: `first` to `last - 1`."""
    ended: frozenset[int] = frozenset()
    """Iterations of this leg that have ended already."""
    active: dict[int, Iteration] = {}
    """Iterations that had begun before this worker got the leg."""
    due: dict[str, int] = {}
    """Task runs that wait, and until when (ms)."""


def command(execution: Execution, run: Run, leg: Leg, epoch: int) -> RunLeg:
    """The command for one leg. What it holds is the worker's own: the state stays untouched."""
    loop = run.loop
    due = {key: wait.due for key, wait in run.suspended.items() if wait.due is not None}
    common: dict[str, Any] = {
        "execution_id": execution.execution_id,
        "step": run.step,
        "step_run_id": run.step_run_id,
        "leg": leg.leg,
        "epoch": epoch,
        "args": run.args,
        "ctx": run.ctx,
        "workload": execution.workload,
        "trace_id": execution.trace_id or execution.execution_id,
        "store": execution.store,
        "due": due,
        "resumed": run.started,
    }
    if loop is None:
        return RunLeg(**common, frame=copy.deepcopy(run.frame) if run.started else Frame())
    first, last = (leg.first, leg.last) if loop.exec == "distributed" else (loop.low, loop.total)
    mine = range(first, last)
    return RunLeg(
        **common,
        items=loop.items,
        total=loop.total,
        first=first,
        last=last,
        ended=frozenset(index for index in loop.ended if index in mine)
        | frozenset(range(first, min(loop.low, last))),
        active={
            index: copy.deepcopy(iteration)
            for index, iteration in loop.active.items()
            if index in mine
        },
    )


def offered(execution: Execution, events: Iterable[e.Event]) -> Iterable[tuple[Run, Leg]]:
    """The legs that a decision offers."""
    for event in events:
        if type(event) is e.TokenEnqueued:
            run = execution.runs.get(event.step_run_id)
            if run is not None and event.leg in run.legs:
                yield run, run.legs[event.leg]


def open_legs(execution: Execution) -> Iterable[tuple[Run, Leg]]:
    """Every leg that somebody must run: what a new owner offers first."""
    for run in execution.runs.values():
        for leg in run.legs.values():
            yield run, leg
