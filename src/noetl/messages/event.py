"""What every event is, and what the events of one run have in common (EVT-1)."""

from typing import Literal

import msgspec

Source = Literal["server", "worker"]
End = Literal["completed", "failed", "cancelled"]
"""How an execution ends."""


class Event(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="name", gc=False
):
    """Anything that can stand in the log."""


class StepEvent(Event, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An event of one step run."""

    step: str
    """The name of the step."""
    step_run_id: str
    """The run of the step."""


class TaskEvent(StepEvent, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An event of one task run; its id tells in which iteration it stands (EVT-0)."""

    task_run_id: str
    """One arrival at the task, with all its attempts (TASK-9)."""
    task: str
    """The label of the task."""
    part: int = msgspec.field(default=0, name="leg")
    """The part of the run that a worker was working on."""
