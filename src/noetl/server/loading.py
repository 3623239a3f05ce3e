"""Inputs that wait until the bodies are loaded that their decision looks into (RES-2)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from noetl.errors import BodyLost
from noetl.messages.reference import Reference
from noetl.messages.requests import Input
from noetl.ports.bodies import Bodies
from noetl.ports.commit import Commit
from noetl.ports.event_log import EventLog
from noetl.ports.session import PartLost, Taken, refused_writes
from noetl.server.active import ActiveExecution, Waiting
from noetl.server.replay import replay

if TYPE_CHECKING:
    from noetl.server.server import Server


class Spoiled(Exception):
    """A decision found that it needs bodies: the state has moved and must be read again."""

    def __init__(self, references: Sequence[Reference]) -> None:
        super().__init__()
        self.references = references


class Loading:
    """Loads what decisions need; what waits for it is decided in its order."""

    def __init__(self, server: "Server", log: EventLog, bodies: Bodies) -> None:
        self._server = server
        self._log = log
        self._bodies = bodies
        self.lost: dict[str, str] = {}
        """Bodies that were asked for and cannot be had, and why."""

    def missing(self, references: Sequence[Reference]) -> list[Reference]:
        at_hand, lost = self._bodies.at_hand, self.lost
        return [one for one in references if one.key not in at_hand and one.key not in lost]

    def queue(
        self,
        active: ActiveExecution,
        given: Input,
        notes: tuple[int, ...],
        wanted: Sequence[Reference] = (),
        *,
        again: bool = False,
    ) -> Taken:
        """The input waits in its place until the bodies are there; nothing else is held up."""
        waiting = Waiting(given, notes, Commit())
        active.inputs.append(waiting)
        if len(active.inputs) == 1:
            self._server.chore(self._load(active, wanted, again=again))
        return Taken(None, waiting.commit)

    async def _load(
        self, active: ActiveExecution, wanted: Sequence[Reference], *, again: bool
    ) -> None:
        lost: list[str] = []
        try:
            if active.held:  # what is asked for may be on its way to the store
                await active.settled()
            for reference in wanted:
                try:
                    await self._bodies.load(reference)
                except BodyLost as gone:  # RES-4: the template that touches it says so
                    self.lost[reference.key] = str(gone)
                    lost.append(reference.key)
            if again:
                await active.settled()
                execution_id = active.execution.execution_id
                active.execution, _ = await replay(self._log, execution_id, active.plan)
        except Exception as fault:
            self._server.drop(active, fault)
            return
        waiting = list(active.inputs)
        active.inputs.clear()
        for one in waiting:
            if not self._server.is_active(active):  # the one before was its last
                one.commit.settle(active.finished.exception() or PartLost("it is not here"))
                continue
            taken = self._server.receive(active, one.given, notes=one.notes)
            _follow(one.commit, taken)
        for key in lost:  # another time it may be there
            self.lost.pop(key, None)
        if not active.inputs:
            self._server.handout.offer_postponed(active)


def _follow(commit: Commit, taken: Taken) -> None:
    """An input that had to wait gets the answer of the one that was decided in its place."""
    if taken.events == []:
        commit.settle(PartLost("it came too late, or twice"))
        return

    def pass_on(found: Commit) -> None:
        commit.refused = found.refused or refused_writes(taken.events or [])
        commit.settle(found.exception())

    taken.committed.add_done_callback(pass_on)
