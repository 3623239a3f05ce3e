"""What a pipeline asks of whoever drives it: data, each with the answer that it expects."""

from typing import Any

import msgspec

from noetl.messages.events import TaskDone
from noetl.messages.reference import Reference
from noetl.pipeline.frame import Frame
from noetl.playbook.plan import LoopPlan, Scope, TaskPlan


class CallTool(msgspec.Struct, frozen=True):
    """Call the tool of `task` with these rendered inputs; answered with an Outcome."""

    task: TaskPlan
    inputs: dict[str, Any]
    task_run_id: str
    attempt: int


class RunLoop(msgspec.Struct, frozen=True):
    """Run the nested loop of `task` (LOOP-7); answered with an Outcome."""

    task: TaskPlan
    task_run_id: str
    frame: Frame
    scope: Scope
    loops: tuple[LoopPlan, ...]
    """The loops around the task, inner first."""


class Pause(msgspec.Struct, frozen=True):
    """Wait before the next run of a task (TASK-3, TASK-4)."""

    seconds: float
    task: str
    task_run_id: str
    reason: str
    attempt: int


class Settle(msgspec.Struct, frozen=True):
    """Ask the server about a write to ctx (LOOP-5); answered with the event as it was recorded."""

    done: TaskDone


class Load(msgspec.Struct, frozen=True):
    """
    A template touched a body that is not loaded; answered when it is in `$bodies`, with None,
    or with a sentence if it is lost (RES-4).
    """

    reference: Reference


class AwaitAnswer(msgspec.Struct, frozen=True):
    """
    Wait for a time, a signal or a person (WAIT). Nobody answers it: the worker lets go of the
    pipeline, and whoever takes it up again finds the answer in `Surroundings.waits`.
    """

    task: str
    task_run_id: str
    attempt: int
    awaits: list[dict[str, Any]] | None = None
    """What can end it; None where that is recorded already."""
    timeout: float | None = None
    lent: str | None = None
    call: CallTool | None = None
    """The same as a call, for whoever has an answer at hand: a test with canned outcomes."""


class Parked(Exception):
    """A pipeline waits (WAIT-2): whoever drives it lets go of it at this task run."""

    def __init__(self, task: str, task_run_id: str) -> None:
        super().__init__(task_run_id)
        self.task, self.task_run_id = task, task_run_id


class FindKept(msgspec.Struct, frozen=True):
    """
    Is there an outcome under this key (CACHE-1)? Answered with a CacheHit, or with whether the
    outcome that comes may be kept.
    """

    task: str
    """As `CachePlan.name` has it."""
    key: str
    again: bool
    """A further attempt: nothing is looked for, the outcome before was not good enough."""


class Breathe(msgspec.Struct, frozen=True):
    """Many task runs went by that waited for nothing: let others have a turn."""


Ask = CallTool | RunLoop | Pause | Settle | Load | AwaitAnswer | FindKept | Breathe
