"""Inputs whose decision cannot be made at once: bodies are loaded (RES-2), or it takes long."""

import asyncio
from collections import ChainMap
from collections.abc import Callable, MutableMapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import msgspec

from noetl.control.decide import decide
from noetl.control.deciding import Needs
from noetl.control.execution import Execution
from noetl.control.limits import given_up, hoping
from noetl.errors import BodyLost, ExecutionNotFound
from noetl.messages import events as e
from noetl.messages.codec import encode_events
from noetl.messages.reference import Reference
from noetl.messages.requests import Input
from noetl.ports.bodies import Bodies
from noetl.ports.commit import Commit
from noetl.ports.event_log import EventLog
from noetl.ports.session import PartLost, Taken, refused_writes
from noetl.server.active import ActiveExecution, Waiting
from noetl.server.replay import replay
from noetl.server.timers import now

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from noetl.server.server import Server


NOTHING = Needs(())


@cache
def slow_thread() -> "ThreadPoolExecutor":
    """One at a time: each takes its turns with the interpreter from the event loop."""
    from concurrent.futures import ThreadPoolExecutor  # most decisions take no time

    return ThreadPoolExecutor(1, thread_name_prefix="decider")


class Spoiled(Exception):
    """A decision found what it needs: the state has moved and must be read again."""

    def __init__(self, needs: Needs) -> None:
        super().__init__()
        self.needs = needs


class Decided(msgspec.Struct, frozen=True):
    """What was decided, on a state that stood at `expected`, at a time (ms)."""

    events: list[e.Event]
    text: bytes
    offers: list[e.TokenEnqueued]
    """The parts in it that were not run at once."""
    expected: int
    at: int
    given_up: tuple[str, ...] = ()
    """Claims on limits whose token was dropped: no run will give them back."""


def offers_in(events: list[e.Event]) -> list[e.TokenEnqueued]:
    """The parts that a decision offers."""
    kinds = [*map(type, events)]
    number = kinds.count(e.TokenEnqueued)
    if number == 0:
        return []
    first = kinds.index(e.TokenEnqueued)
    found = events[first : first + 1] if number == 1 else events[first:]
    return [event for event in found if type(event) is e.TokenEnqueued]


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

    def bodies(self) -> MutableMapping[str, Any]:
        """What a decision may look into; what it adds is its own."""
        at_hand = self._bodies.at_hand
        return ChainMap({}, at_hand) if at_hand else {}

    def queue(
        self,
        active: ActiveExecution,
        given: Input,
        notes: tuple[int, ...],
        needs: Needs = NOTHING,
        *,
        again: bool = False,
    ) -> Taken:
        """The input waits in its place until all is there; nothing else is held up."""
        waiting = Waiting(given, notes, Commit())
        active.inputs.append(waiting)
        if len(active.inputs) == 1:
            self._server.chore(self._load(active, needs, again=again))
        return Taken(None, waiting.commit)

    async def _load(self, active: ActiveExecution, needs: Needs, *, again: bool) -> None:
        lost: list[str] = []
        decided: Decided | None = None
        try:
            if active.held:  # what is asked for may be on its way to the store
                await active.settled()
            await self._fetch(needs.references, lost)
            if needs.time:
                decided = await self._decide_aside(active, active.inputs[0].given, lost)
            elif again:
                active.execution = await self._read_again(active)
        except Exception as fault:
            self._server.drop(active, fault)
            return
        waiting = list(active.inputs)
        active.inputs.clear()
        for one in waiting:
            if not self._server.is_active(active):  # the one before was its last
                one.commit.settle(active.finished.exception() or PartLost("it is not here"))
                continue
            if decided is not None:
                taken, decided = self._server.record(active, decided, one.notes), None
            else:
                taken = self._server.receive(active, one.given, notes=one.notes)
            _follow(one.commit, taken)
        for key in lost:  # another time it may be there
            self.lost.pop(key, None)
        if not active.inputs:
            self._server.handout.offer_postponed(active)

    async def _fetch(self, wanted: Sequence[Reference], lost: list[str]) -> None:
        for reference in wanted:
            try:
                await self._bodies.look_into(reference)
            except BodyLost as gone:  # RES-4: the template that touches it says so
                self.lost[reference.key] = str(gone)
                lost.append(reference.key)

    async def _read_again(self, active: ActiveExecution) -> Execution:
        """The state as the log has it."""
        await active.settled()
        execution_id = active.execution_id
        try:
            load = self._bodies.load
            return (await replay(self._log, execution_id, active.plan, load))[0]
        except ExecutionNotFound:  # its start is what is decided
            return Execution(execution_id=execution_id)

    async def _decide_aside(
        self, active: ActiveExecution, given: Input, lost: list[str]
    ) -> Decided:
        """TPL-5: what takes longer than a loop may stand still is decided in a thread."""
        while True:
            execution = await self._read_again(active)
            expected, at = execution.seq, now()
            hoped = hoping(active.plan, execution)
            ask = partial(decide, at=at, bodies=self.bodies(), lost=self.lost)
            work = partial(_written, partial(ask, active.plan, execution, given))
            found, text = await asyncio.get_running_loop().run_in_executor(slow_thread(), work)
            if not isinstance(found, Needs):
                active.execution = execution
                left = given_up(hoped, active.plan, execution)
                return Decided(found, text, offers_in(found), expected, at, left)
            await self._fetch(found.references, lost)


def _written(ask: Callable[[], list[e.Event] | Needs]) -> tuple[list[e.Event] | Needs, bytes]:
    found = ask()
    return found, b"" if isinstance(found, Needs) else encode_events(found)


def _follow(commit: Commit, taken: Taken) -> None:
    """An input that had to wait gets the answer of the one that was decided in its place."""
    if taken.events == []:
        commit.settle(PartLost("it came too late, or twice"))
        return

    def pass_on(found: Commit) -> None:
        commit.refused = found.refused or refused_writes(taken.events or [])
        commit.settle(found.exception())

    taken.committed.add_done_callback(pass_on)
