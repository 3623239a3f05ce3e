"""How a worker lets go of what waits: it records what is awaited, and keeps nothing (WAIT-2)."""

from typing import TYPE_CHECKING, Any

from noetl.control.waits_held import WAITS
from noetl.messages import events as e
from noetl.pipeline.asks import AwaitAnswer, Parked

if TYPE_CHECKING:
    from noetl.worker.part import PartWork


def parked(part: "PartWork", ask: AwaitAnswer) -> Parked:
    """Record what is awaited, unless it is; the answer comes with another command."""
    if ask.awaits is not None:
        started = e.WaitStarted(
            **ids_of(part),
            task=ask.task,
            task_run_id=ask.task_run_id,
            awaits=ask.awaits,
            timeout=ask.timeout,
            attempt=ask.attempt,
            lent=ask.lent,
        )
        part.events.append(part.fit(started))
    return Parked(ask.task, ask.task_run_id)


def let_go(part: "PartWork", waits: Parked) -> None:
    """Nothing of the run, or of this iteration, runs any more: no lease is held for it."""
    part.events.append(
        e.TaskSuspended(
            **ids_of(part), task=waits.task, task_run_id=waits.task_run_id, reason=WAITS
        )
    )


def ids_of(part: "PartWork") -> dict[str, Any]:
    command = part.command
    return {"step": command.step, "step_run_id": command.step_run_id, "part": command.part}
