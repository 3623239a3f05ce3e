"""An execution that this process owns: its state, its plan, and who waits for it."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from noetl.control.execution import Execution, Run
from noetl.messages.requests import Input
from noetl.playbook.plan import Plan
from noetl.ports.commit import Commit, committed
from noetl.ports.event_log import Decision

if TYPE_CHECKING:
    from noetl.ports.limits import LimitClaim
    from noetl.server.asked import AskedPeople
    from noetl.server.clocks import WaitClock

SNAPSHOT_AFTER = 1000
"""Decisions in the tail before a snapshot is worth its place (design: max(1000, 4 x live))."""


class Timer(Protocol):
    """What is to happen at a time."""

    def cancel(self) -> None: ...


class Waiting(msgspec.Struct, frozen=True):
    """An input that waits until bodies are loaded."""

    given: Input
    notes: tuple[int, ...]
    commit: Commit


class Held(msgspec.Struct, frozen=True):
    """A decision whose bodies are being stored, or that comes after one."""

    decision: Decision
    bodies: list[bytes]
    commit: Commit


class ActiveExecution:
    """What the server keeps in memory of one execution; the log can always make it again."""

    def __init__(self, execution: Execution, plan: Plan, *, folder: str | None, term: int) -> None:
        self.execution = execution
        self.plan = plan
        self.folder = folder
        self.term = term
        """Epochs of this ownership begin here: older workers' reports are refused (EVT-3)."""
        self.clock: WaitClock | None = None
        """Of waits; None where no task of the plan waits."""
        self.asked: AskedPeople | None = None
        """Whom it waits for among people; None where no task of the plan waits."""
        self.tail = 0
        """Decisions since the last snapshot."""
        self._worth_it = SNAPSHOT_AFTER
        self.started_at = 0
        self.ended_at: int | None = None
        """Both in ms since 1970."""
        self.version: str | None = None
        self.uncommitted = 0
        self.resumed = False
        self.careful = False
        """Whether a process died with it: what is begun is recorded before (T11)."""
        self.inputs: deque[Waiting] = deque()
        """Inputs that came while bodies were loaded; until then nothing is decided."""
        self.postponed: list[tuple[str, int]] = []
        """Step runs and parts that became ready meanwhile."""
        self.held: deque[Held] = deque()
        """Decisions that wait for their bodies to be stored, in order."""
        self.settle: Callable[[Commit], None] = _nothing
        """Called with the answer to each append."""
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """
        Resolved when the end is committed; failed when the log could not be written, cancelled
        when it went on without this process.
        """
        self.claim: LimitClaim | None = None
        """The place that its first decision takes with its commit (`Decision.claim`)."""
        self.latest = committed()
        """The answer to the latest append: those before it are settled before."""
        self.begun: Commit | None = None
        """The answer to the first append of this ownership."""
        self.listeners: list[Callable[[], None]] = []
        """Called after each commit: there is something new to read."""
        self.timers: dict[str, Timer] = {}
        """Of the execution (under ""), of step runs, and of parts that wait for a time."""

    @property
    def execution_id(self) -> str:
        return self.execution.execution_id

    @property
    def in_log(self) -> bool:
        """Whether all that was asked of it is there, its start above all."""
        return not self.uncommitted and (self.begun is None or self.begun.done())

    @property
    def due_for_snapshot(self) -> bool:
        if self.tail < self._worth_it:
            return False
        # Counted once, and not with each decision: thousands may wait (WAIT-2).
        least = 4 * sum(map(live_in, self.execution.runs.values()))
        due = self.tail >= least
        self._worth_it = SNAPSHOT_AFTER if due else least
        return due

    async def settled(self) -> None:
        """Returns when nothing waits for the log any more; raises what the log said."""
        await self.passes(lambda: bool(self.uncommitted))
        if self.finished.done() and not self.finished.cancelled():
            self.finished.result()

    async def passes(self, holds: Callable[[], bool]) -> None:
        """Returns when this holds no longer, or it has ended."""
        while holds() and not self.finished.done():
            news: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            wake = partial(_wake, news)
            self.listeners.append(wake)
            try:
                await asyncio.wait((news, self.finished), return_when=asyncio.FIRST_COMPLETED)
            finally:
                self.listeners.remove(wake)

    def leave(self) -> None:
        """It is decided here no more, and nothing is wrong: whoever waits looks at the log."""
        self._stop_clocks()
        self.finished.cancel()

    def end(self, fault: BaseException | None = None) -> None:
        self._stop_clocks()
        if self.finished.done():
            return
        if fault is None:
            self.finished.set_result(None)
        else:
            self.finished.set_exception(fault)
            self.finished.exception()  # whoever waits gets it; nobody has to

    def _stop_clocks(self) -> None:
        for timer in self.timers.values():
            timer.cancel()
        self.timers.clear()
        if self.clock is not None:
            self.clock.stop()


def live_in(run: Run) -> int:
    """How much of a run a snapshot has to hold: its parts, and what waits without one."""
    waiting = 0 if run.loop is None or run.parts else len(run.loop.active)
    return len(run.parts) + waiting or 1


def _wake(news: "asyncio.Future[Any]") -> None:
    if not news.done():
        news.set_result(None)


def _nothing(_: Commit) -> None:
    pass
