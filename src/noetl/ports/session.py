"""
The control plane as a worker sees it: it takes reports, and starts children.

Two things keep this contract: `worker.session.WireSession`, over NATS or HTTP, and
`node.direct.DirectSession`, where server and worker share a process.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from noetl.control.dispatch import Command
from noetl.messages import events as e
from noetl.messages.outcome import CacheHit
from noetl.messages.requests import Report
from noetl.ports.commit import Commit


class PartLost(Exception):
    """The server refused a report: another worker owns the part, or the run has ended."""


class Taken(msgspec.Struct, frozen=True):
    """The answer to a report."""

    events: list[e.Event] | None
    """What was recorded; nothing: it was refused; None: that is known with the commit."""
    committed: Commit


class ChildAsked(msgspec.Struct, frozen=True, kw_only=True):
    """A playbook that a task runs as a child (TOOL-1)."""

    execution_id: str
    parent_execution_id: str
    parent_id: str
    """The task run."""
    path: str
    version: str | None
    payload: dict[str, Any]


class Session(Protocol):
    """What the work on a part asks of the control plane."""

    def report(self, execution_id: str, report: Report) -> Taken:
        """Hand over a report; the answer is there at once, the commit comes later."""

    def report_turn(self, execution_id: str, reports: list[Report]) -> list[Taken]:
        """The same for parts of one loop that have something to tell in the same turn."""

    def hand_back(self, command: Command) -> None:
        """Give up a part that waits long; its report is committed (TASK-8)."""

    def broken(self, command: Command, fault: BaseException) -> None:
        """A part fell to a fault of ours: its run fails honestly, the others go on (promise 7)."""

    def far_ahead(self) -> bool:
        """Whether too many decisions wait for their commit."""

    async def child(self, command: Command, asked: ChildAsked, *, wait: bool) -> dict[str, Any]:
        """What came of the child of this part: `{execution_id, status, ctx, result, error}`."""

    async def kept(self, command: Command, task: str, key: str) -> CacheHit | None:
        """The outcome that is kept for a task of this part under a key (CACHE-1)."""

    async def moved(self, command: Command, task_run_id: str) -> int:
        """
        How far pauses of the execution have moved the end of a recorded delay (ms); the answer
        comes when it is not paused (WAIT-6).
        """


def is_task_of(task_run_id: str, step_run_id: str) -> bool:
    """Whether a task run is one of this step run: both begin with the same number (EVT-0)."""
    return task_run_id.startswith(step_run_id.partition(".")[0] + ".")


def refused_writes(events: Sequence[e.Event]) -> list[e.TaskDone]:
    """LOOP-5: outcomes whose write to ctx was turned into a failure."""
    return [
        event
        for event in events
        if type(event) is e.TaskDone
        and event.error is not None
        and event.error.get("kind") == "ctx_conflict"
    ]
