"""How does a restarted execution begin? With what it took over, and what is run again (RST)."""

from collections.abc import Iterator, Mapping
from typing import Any

from noetl.control.deciding import Deciding
from noetl.control.execution import Run
from noetl.control.folding import unfinished
from noetl.control.loops import largest_part, offer
from noetl.messages import events as e
from noetl.messages.requests import KeptState


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
        go_on(deciding, run)


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
