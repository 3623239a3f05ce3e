"""Reports whose bodies are on their way to the store: they are sent when those are durable."""

import math
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from noetl.masking import KNOWN
from noetl.messages import events as e
from noetl.messages.outcome import make_error
from noetl.ports.commit import Commit
from noetl.ports.session import PartLost, Taken, refused_writes
from noetl.worker.turn import send

if TYPE_CHECKING:
    from noetl.worker.part import PartWork

STORE = 600.0
"""Seconds that a result waits for a store that is away; its lease is renewed meanwhile."""


class Unsent(NamedTuple):
    """A report that waits until the bodies that it refers to are stored (EVT-4)."""

    events: list[e.Event]
    bodies: list[tuple[str, bytes]]
    commit: Commit


class UnsentReports:
    """The reports of one part that wait, in order."""

    def __init__(self, part: "PartWork") -> None:
        self._part = part
        self._unsent: deque[Unsent] = deque()

    def __bool__(self) -> bool:
        return bool(self._unsent)

    def add(self, events: list[e.Event], bodies: list[tuple[str, bytes]]) -> Commit:
        """Bodies are durable before the events that refer to them; reports keep their order."""
        unsent = Unsent(events, bodies, Commit())
        self._unsent.append(unsent)
        if len(self._unsent) == 1:
            self._part.worker.store(self._store())
        return unsent.commit

    async def _store(self) -> None:
        while self._unsent:
            unsent = self._unsent[0]
            try:
                for key, body in unsent.bodies:
                    await self._put(body)
                    self._part.fitting.stored(key)
                taken = send(self._part, unsent.events)
            except PartLost as lost:
                self._give_up(lost)
            except Exception as refused:  # whatever the store says: the others go on
                self._fail(refused)
            else:
                self._unsent.popleft()
                taken.committed.add_done_callback(partial(_pass_on, unsent.commit, taken))

    async def _put(self, body: bytes) -> None:
        """A worker has time, since its lease is renewed; a run that is attended asks for room."""
        worker, execution_id = self._part.worker, self._part.command.execution_id
        patience = STORE if worker.patience < math.inf else None
        await worker.results.put(execution_id, body, patience=patience)

    def _give_up(self, fault: BaseException) -> None:
        self._part.lost = self._part.stopped = True
        unsent = list(self._unsent)
        self._unsent.clear()
        for one in unsent:
            one.commit.settle(fault)

    def _fail(self, refused: Exception) -> None:
        """The run fails with the true reason: what it came to cannot be kept."""
        step, run_id = self._part.command.step, self._part.command.step_run_id
        message = KNOWN.masked(f"a result of step '{step}' cannot be stored: {refused}")
        error = make_error("result", message, retryable=True)
        with suppress(PartLost):
            send(self._part, [e.StepFailed(step=step, step_run_id=run_id, error=error)])
        self._give_up(PartLost(run_id))
        self._part.worker.abandon(self._part)


def _pass_on(commit: Commit, taken: Taken, found: Commit) -> None:
    commit.refused = found.refused or refused_writes(taken.events or [])
    commit.settle(found.exception())
