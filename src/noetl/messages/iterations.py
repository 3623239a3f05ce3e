"""Which events happen inside the iterations of a loop, and how many of what they come to."""

from typing import Any

import msgspec

TOLD_OF_TASKS = ("task.", "ctx.")
LOOP_ENDS = ("loop.started", "loop.done")
OFFERS = ("token.enqueued", "token.claimed")
MOST_FAILED = 50
"""Failed iterations of one run that are named at once."""


class EventHint(msgspec.Struct, gc=False):
    """So much of a recorded event as says where it happened: the rest is not even decoded."""

    name: str
    step: Any = None
    step_run_id: Any = None
    task_run_id: Any = None
    parent_id: Any = None
    index: Any = None
    part: Any = msgspec.field(default=0, name="leg")


def is_inside(event: EventHint) -> bool:
    """
    Whether it happens inside an iteration, or offers one more range of them to a worker.

    Waits are not inside, wherever they are: somebody may have to answer them.
    """
    if event.name.startswith("loop.iteration."):
        return True
    if event.name in LOOP_ENDS:
        return event.parent_id is not None
    if event.name in OFFERS:
        return bool(event.part)
    if event.name.startswith(TOLD_OF_TASKS):
        return str(event.task_run_id or "").count(".") > 1
    return False


class IterationCount(msgspec.Struct, omit_defaults=True):
    """How many iterations of one step run began and ended."""

    step: str
    started: int = 0
    done: int = 0
    failed: int = 0
    failures: list[int] = []
    """The indexes of those that failed, the first of them."""


Counts = dict[str, IterationCount]
"""By step run."""


def count(counts: Counts, event: EventHint) -> None:
    """Iterations of nested loops are counted by their tasks, not by the step."""
    happened = event.name.removeprefix("loop.iteration.")
    if event.parent_id is not None or happened not in ("started", "done", "failed"):
        return
    run_id = str(event.step_run_id)
    counted = counts.get(run_id)
    if counted is None:
        counted = counts[run_id] = IterationCount(str(event.step))
    setattr(counted, happened, getattr(counted, happened) + 1)
    if happened == "failed" and len(counted.failures) < MOST_FAILED:
        counted.failures.append(int(event.index or 0))
