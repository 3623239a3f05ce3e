"""An execution that this process owns: its state, its plan, and who waits for it."""

import asyncio
from collections.abc import Callable

from noetl.control.dispatch import may_run_inline
from noetl.control.execution import Execution
from noetl.playbook.plan import Plan
from noetl.ports.bodies import Bodies
from noetl.ports.commit import Commit

SNAPSHOT_AFTER = 1000
"""Decisions in the tail before a snapshot is worth its place (design: max(1000, 4 x live))."""


class ActiveExecution:
    """What the server keeps in memory of one execution; the log can always make it again."""

    def __init__(
        self, execution: Execution, plan: Plan, *, folder: str | None, bodies: Bodies, term: int
    ) -> None:
        self.execution = execution
        self.plan = plan
        self.folder = folder
        self.bodies = bodies
        self.term = term
        """Epochs of this ownership begin here: older workers' reports are refused (EVT-3)."""
        self.touches_world = any(step.pipeline.effect for step in plan.steps.values())
        self.runs_through = any(map(may_run_inline, plan.steps.values()))
        """Whether some step may run without a worker."""
        self.tail = 0
        """Decisions since the last snapshot."""
        self.started_at = 0
        self.ended_at: int | None = None
        """Both in ms since 1970."""
        self.version: str | None = None
        self.uncommitted = 0
        self.resumed = False
        self.settle: Callable[[Commit], None] = _nothing
        """Called with the answer to each append."""
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Resolved when the end is committed; failed when the log could not be written."""
        self.begun: Commit | None = None
        """The answer to the first append of this ownership."""
        self.listeners: list[Callable[[], None]] = []
        """Called after each commit: there is something new to read."""
        self.timer: asyncio.TimerHandle | None = None
        self.timed: dict[str, asyncio.TimerHandle] = {}
        """Step runs whose timeout is counted here."""

    @property
    def due_for_snapshot(self) -> bool:
        if self.tail < SNAPSHOT_AFTER:
            return False
        active = sum(len(run.parts) for run in self.execution.runs.values())
        return self.tail >= 4 * active

    def end(self, fault: BaseException | None = None) -> None:
        if self.timer is not None:
            self.timer.cancel()
        for timer in self.timed.values():
            timer.cancel()
        if self.finished.done():
            return
        if fault is None:
            self.finished.set_result(None)
        else:
            self.finished.set_exception(fault)
            self.finished.exception()  # whoever waits gets it; nobody has to


def _nothing(_: Commit) -> None:
    pass
