"""How does a restarted execution begin? With what it took over, and what is run again (RST)."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from noetl.control.deciding import Deciding
from noetl.control.execution import Run
from noetl.control.folding import unfinished
from noetl.control.limits import asked
from noetl.control.loops import end_early, largest_part, may_start, offer
from noetl.errors import TemplateFailed
from noetl.messages import events as e
from noetl.messages.outcome import make_error
from noetl.messages.requests import KeptState
from noetl.pipeline.policy import template_error
from noetl.playbook.plan import LimitPlan


def restore(deciding: Deciding, kept: KeptState) -> None:
    """Record what was taken over."""
    execution = deciding.execution
    deciding.keep(
        e.ExecutionRestored(
            ctx=kept.ctx,
            leaves=kept.leaves,
            kept=kept.kept,
            runs_kept=len(kept.runs),
            tokens_kept=len(kept.tokens),
        )
    )
    for one in kept.runs:
        ids = {"step": one.step, "step_run_id": f"{execution.seq + 1}.0"}
        deciding.keep(e.StepRestored(**ids, origin_run_id=one.origin_run_id, run=one.run))
    for fields in kept.tokens:
        token_id = f"{execution.seq}.0"
        deciding.make(e.TokenCreated(token_id=token_id, **fields))


def take_up(deciding: Deciding) -> None:
    """Offer what goes on, and try every token again."""
    execution = deciding.execution
    deciding.tokens.extend(execution.tokens.values())
    for run in list(execution.runs.values()):
        limit = deciding.plan.steps[run.step].limit
        if limit is not None and has_more(deciding, run):
            wait_for_place(deciding, run, limit)
        else:
            go_on(deciding, run)


def has_more(deciding: Deciding, run: Run) -> bool:
    """Whether a worker is needed: a loop whose iterations have all ended only ends."""
    plan, loop = deciding.plan.steps[run.step].loop, run.loop
    if loop is None or plan is None or loop.exec == "local":
        return True
    return any(True for _ in unfinished(loop)) or may_start(deciding, run, loop, plan)


def wait_for_place(deciding: Deciding, run: Run, limit: LimitPlan) -> None:
    """LIMIT-3: the place of the old run was given back with its end; this one needs its own."""
    try:
        scope = deciding.scope(run.args)
        key, priority = deciding.evaluate(lambda scope: asked(limit, scope), scope)
    except TemplateFailed as fault:
        error = template_error(fault, f"the limit of step '{run.step}'")
        end_early(deciding, run, error, deciding.own)
        return
    deciding.emit(e.StepParked(**run.ids, key=key, priority=priority))


def place_granted(deciding: Deciding, run: Run, parked: e.StepParked) -> None:
    """It goes on; while the execution is paused it keeps its place (LIMIT-2)."""
    if deciding.execution.status == "paused":
        deciding.emit(msgspec.structs.replace(parked, reason="paused"))
    else:
        go_on(deciding, run)


def resume_parked(deciding: Deciding) -> None:
    for run in list(deciding.execution.runs.values()):
        if run.parked is not None and run.parked.reason == "paused":
            go_on(deciding, run)


def stop_parked(deciding: Deciding) -> None:
    """Nobody has these, so nobody would report their end."""
    for run in list(deciding.execution.runs.values()):
        if run.parked is not None:
            end_early(deciding, run, UNBEGUN, deciding.own)


UNBEGUN = make_error("cancelled", "the execution was stopped before this went on")


def go_on(deciding: Deciding, run: Run) -> None:
    """Nobody holds a part of it any more: offer what is open."""
    plan, loop = deciding.plan.steps[run.step].loop, run.loop
    if loop is None or plan is None or loop.exec == "local":
        deciding.emit(e.TokenEnqueued(**run.ids, pool=deciding.plan.executor.pool))
        return
    for first, last in ranges(unfinished(loop), largest_part(deciding, run, plan)):
        deciding.emit(
            e.TokenEnqueued(
                **run.ids,
                pool=deciding.plan.executor.pool,
                part=run.next_part,
                first=first,
                last=last,
            )
        )
    offer(deciding, run, plan)


def ranges(indexes: Iterator[int], most: int) -> Iterator[tuple[int, int]]:
    """Neighbours together, at most so many."""
    first = last = -1
    for index in indexes:
        if index != last or last - first >= most:
            if last > first:
                yield first, last
            first = index
        last = index + 1
    if last > first:
        yield first, last


def onto_old(workload: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """RST-4 `--set`: mappings are changed key by key, everything else is replaced."""
    merged = dict(workload)
    for key, value in changes.items():
        below = merged.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[key] = onto_old(below, value) if both else value  # type: ignore[arg-type]
    return merged
