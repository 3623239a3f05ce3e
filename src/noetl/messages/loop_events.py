"""The events of loops and of their iterations (LOOP-3)."""

from typing import Any, Literal

import msgspec

from noetl.messages.event import Source, StepEvent


class LoopStarted(StepEvent, frozen=True, kw_only=True, tag="loop.started"):
    """The collection of a loop is known (LOOP-1); a worker reports it for a nested one (LOOP-7)."""

    total: int
    """How many elements it has."""
    items: Any
    """The collection, or a reference to it (LOOP-1)."""
    mode: Literal["sequential", "parallel"]
    """Whether one iteration waits for the other."""
    exec: Literal["local", "distributed"] = "local"
    """Whether one worker runs it, or the pool."""
    part: int = msgspec.field(default=0, name="leg")
    """Of a nested loop: the part that it runs in."""
    parent_id: str | None = None
    """The task run of a nested loop."""


class IterationEvent(StepEvent, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An event of one iteration."""

    index: int
    """Which one, from 0."""
    iteration_id: str
    """The iteration (EVT-0)."""
    part: int = msgspec.field(default=0, name="leg")
    """The part of the run that it runs in."""
    parent_id: str | None = None
    """The task run of a nested loop."""


class IterationStarted(IterationEvent, frozen=True, kw_only=True, tag="loop.iteration.started"):
    """An iteration begins."""


class IterationDone(IterationEvent, frozen=True, kw_only=True, tag="loop.iteration.done"):
    """An iteration succeeded."""

    result: Any = None
    """Its `_prev` at the end (SCOPE-3)."""


class IterationFailed(IterationEvent, frozen=True, kw_only=True, tag="loop.iteration.failed"):
    """An iteration has failed."""

    error: dict[str, Any]
    """Why (OUT-4)."""


class LoopDone(StepEvent, frozen=True, kw_only=True, tag="loop.done"):
    """The loop's own end; `parent_id` names the task run of a nested one, which never routes."""

    total: int
    """How many iterations there are."""
    done: int
    """How many succeeded."""
    failed: int = 0
    """How many failed."""
    results: Any = []
    """Their results in index order, null for a failed one (LOOP-6)."""
    errors: Any = []
    """`{index, error}` of those that failed."""
    part: int = msgspec.field(default=0, name="leg")
    """Of a nested loop: the part that it ran in."""
    parent_id: str | None = None
    """The task run of a nested loop."""
    source: Source = "worker"
    """Who reported it (LOOP-10)."""
