"""
How decisions wait to be written, and how they share a commit: the same for every database.

Whatever waits when a commit returns goes into the next one; no timer. What one turn of the event
loop asks for is handed over at its end, in one piece (decision 0035). A decision that is refused
takes all later ones of its execution with it, until the caller says that it has loaded it again.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import astuple, fields

from noetl.errors import LogUnavailable, NoetlError, PlaceLost, VersionConflict
from noetl.ports.commit import Commit
from noetl.ports.event_log import Decision, ExecutionRow, PrintedLine

if TYPE_CHECKING:
    from noetl.ports.limits import LimitClaim

Job = Callable[[Any], Any]
Forget = str
"""An execution whose refusal ends here in the queue."""
Entry = tuple[Decision | Job | Forget | None, Any]
"""What is asked for, and its commit, or the future of what is no decision; None only waits."""
RefusedExecutions = dict[str, type[NoetlError]]

UPDATED_AT = [field.name for field in fields(ExecutionRow)].index("updated_at")
MOST_PER_COMMIT = 4096
"""So that no commit keeps other processes waiting for long."""
MOST_BYTES_PER_COMMIT = 16_000_000
MOST_LINES_WAITING = 1000
SOON = 0.3
"""Seconds that a printed line waits for a commit at the most."""
MOST_LINES_KEPT = 100_000
"""While nothing can be written; the oldest go first."""


class DecisionChain:
    """The decisions of one execution in one batch, each on top of the one before."""

    __slots__ = (
        "claim",
        "commits",
        "decisions",
        "expected",
        "holds",
        "last",
        "notes",
        "releases",
        "row",
        "snapshot",
    )

    def __init__(self, expected: int) -> None:
        self.decisions: list[Decision] = []
        self.commits: list[Commit] = []
        self.expected = self.last = expected
        self.row: ExecutionRow | None = None
        self.snapshot: tuple[int, bytes] | None = None
        self.notes: list[int] = []
        self.releases: list[str] = []
        self.holds = False
        self.claim: LimitClaim | None = None

    def grow(self, decision: Decision, commit: Commit) -> None:
        """Add the next decision of the execution."""
        self.decisions.append(decision)
        self.commits.append(commit)
        self.last = decision.last
        if decision.row is not None:
            self.row = decision.row
        if decision.snapshot is not None:
            self.snapshot = (decision.last, decision.snapshot)
        if decision.notes:
            self.notes += decision.notes
        if decision.releases:
            self.releases += decision.releases
        if decision.holds:
            self.holds, self.claim = True, decision.claim

    @property
    def passes(self) -> bool:
        """Whether its place is given back by the commit that takes it."""
        return "" in self.releases

    @property
    def at(self) -> int:
        return self.decisions[-1].at

    @property
    def more(self) -> bool:
        """Whether it changes more than where the execution stands."""
        return (
            self.row is not None or self.snapshot is not None or bool(self.notes or self.releases)
        )

    def columns(self) -> list[Any]:
        """The row as it is after the last decision; later ones have moved `updated_at` on."""
        assert self.row is not None, "only a chain with a row has columns"
        columns = [*astuple(self.row)[:-1], self.last]
        if self.row is not self.decisions[-1].row:
            columns[UPDATED_AT] = self.at
        return columns


class DecisionBatch:
    """Decisions that are written together, the jobs after them, and the answers to all of them."""

    def __init__(self, refused: RefusedExecutions) -> None:
        self.chains: dict[str, DecisionChain] = {}
        self.jobs: list[tuple[Job, asyncio.Future[Any]]] = []
        self.answers: list[Any] = []
        """Those to the jobs; a NoetlError is a refusal."""
        self.lines: list[PrintedLine] = []
        self.size = 0
        self._refused = refused
        self._commits: list[Commit] = []
        self._faults: dict[Commit, NoetlError] = {}
        self._waiting: list[asyncio.Future[Any]] = []

    def add(self, decision: Decision, commit: Commit) -> None:
        """Take the decision in, unless it is already known that it cannot be written."""
        self._commits.append(commit)
        name = decision.execution_id
        chain = self.chains.get(name)
        if self._refused and name in self._refused:
            self._faults[commit] = still_refused(decision, self._refused[name])
        elif chain is not None and chain.last != decision.expected:
            self._refused[name] = VersionConflict
            self._faults[commit] = overtaken(decision, chain.last)
        else:
            if chain is None:
                chain = self.chains[name] = DecisionChain(decision.expected)
            chain.grow(decision, commit)
            self.size += len(decision.events)

    def wait(self, waiting: "asyncio.Future[Any]") -> None:
        """Somebody wants to know when this is over."""
        self._waiting.append(waiting)

    def parts(self) -> "Iterator[DecisionBatch]":
        """Each by itself: one of them is bad, and the others must not be harmed by it."""
        for name, chain in self.chains.items():
            part = DecisionBatch(self._refused)
            part.chains = {name: chain}
            part._faults = self._faults
            yield part
        half = len(self.lines) // 2 if not self.chains else 0
        for lines in (self.lines[:half], self.lines[half:]):
            if lines:
                part = DecisionBatch(self._refused)
                part.lines = lines
                yield part

    def too_late(self, name: str, stands_at: int | None) -> None:
        """Another writer was first; None where it is not known any more how far it came."""
        chain = self.chains.pop(name)
        self._refused[name] = VersionConflict
        for decision, commit in zip(chain.decisions, chain.commits, strict=True):
            self._faults[commit] = overtaken(decision, stands_at)

    def give_up(self, fault_of: Callable[[str | None], NoetlError]) -> None:
        """Nothing of it can be written; the fault names the execution where there is one."""
        for name, chain in self.chains.items():
            fault = fault_of(name)
            self._refused[name] = type(fault)
            for commit in chain.commits:
                self._faults[commit] = fault
        self.answers = [fault_of(None) for _ in self.jobs]

    def settle(self) -> None:
        """Tell everybody, in the order of the calls, on the thread of the event loop."""
        faults = self._faults
        for commit in self._commits:
            commit.settle(faults.get(commit) if faults else None)
        for (_, future), answer in zip(self.jobs, self.answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, NoetlError):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        for future in self._waiting:
            if not future.done():
                future.set_result(None)


def batches(entries: Iterable[Entry], refused: RefusedExecutions) -> Iterator[DecisionBatch]:
    """
    What was asked for, in its order. A batch must be written before the next one is asked for.

    A job sees what was decided before it and nothing that was decided later; a refusal ends where
    its execution is forgotten, for what was queued before that may still be refused.
    """
    batch = DecisionBatch(refused)
    for what, waiting in entries:
        if type(what) is Decision:
            if batch.jobs or batch.size >= MOST_BYTES_PER_COMMIT:
                yield batch
                batch = DecisionBatch(refused)
            batch.add(what, waiting)
        elif what is None:
            batch.wait(waiting)
        elif isinstance(what, str):
            if what in batch.chains:
                yield batch
                batch = DecisionBatch(refused)
            refused.pop(what, None)
            batch.wait(waiting)
        elif callable(what):
            batch.jobs.append((what, waiting))
    yield batch


class BatchWriter(ABC):
    """The one hand that writes, as the thread of the event loop sees it."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._loop = asyncio.get_running_loop()
        self._gathered: list[Entry] = []
        self._lines: deque[PrintedLine] = deque(maxlen=MOST_LINES_KEPT)
        self._refused: RefusedExecutions = {}
        self._unsettled = 0
        """Counts what was queued and is not answered yet."""
        self._closed = False

    def append(self, decision: Decision, *, alone: bool = False) -> Commit:
        """Write one decision; the answer comes after its commit."""
        check(decision)
        commit = Commit()
        if not (alone and self._unsettled == 0 and self._write_now(decision, commit)):
            self._put(decision, commit)
        return commit

    def forget(self, execution_id: str) -> None:
        """End the refusal of an execution's decisions, for those that are queued from now on."""
        if self._unsettled == 0:
            self._refused.pop(execution_id, None)
        else:
            self._put(execution_id, self._loop.create_future())

    def keep(self, line: PrintedLine) -> None:
        """Write a printed line with the next commit, or soon."""
        if not self._lines:
            self._loop.call_later(SOON, self._hand_on_lines)
        self._lines.append(line)
        if len(self._lines) >= MOST_LINES_WAITING and self._unsettled == 0 and not self._closed:
            self._put(None, self._loop.create_future())

    def _hand_on_lines(self) -> None:
        """A task that takes long is heard while it runs, though nothing is decided."""
        if not self._lines or self._closed:
            return
        if self._unsettled:
            self._loop.call_later(SOON, self._hand_on_lines)
        else:
            self._put(None, self._loop.create_future())

    async def drain(self) -> None:
        """Wait until all that was queued before is answered; printed lines are written too."""
        if self._closed:
            raise self._is_closed()
        if self._unsettled or self._lines:
            await self._ask(None)

    async def _finish(self) -> None:
        """Whatever is queued while the last of it is written is written too; then no more."""
        while self._unsettled or self._lines:
            await self._ask(None)
        self._closed = True

    def _ask(self, job: Job | None) -> "asyncio.Future[Any]":
        future = self._loop.create_future()
        self._put(job, future)
        return future

    def _put(
        self, what: Decision | Job | Forget | None, waiting: "asyncio.Future[Any] | Commit"
    ) -> None:
        if self._closed:
            if isinstance(waiting, Commit):
                waiting.settle(self._is_closed())
            else:
                waiting.set_exception(self._is_closed())
            return
        self._unsettled += 1
        if not self._gathered:
            self._loop.call_soon(self._turn_ends)
        self._gathered.append((what, waiting))

    def _turn_ends(self) -> None:
        gathered, self._gathered = self._gathered, []
        self._hand_over(gathered)

    @abstractmethod
    def _hand_over(self, gathered: list[Entry]) -> None:
        """All that one turn of the event loop has asked for."""

    def _write_now(self, decision: Decision, commit: Commit) -> bool:  # noqa: ARG002
        """Commit at once where nothing else waits, if that is cheaper; False if it is not."""
        return False

    def _take_lines(self) -> list[PrintedLine]:
        return [self._lines.popleft() for _ in range(len(self._lines))]

    def _is_closed(self) -> LogUnavailable:
        return LogUnavailable(f"the home {self._place} is closed")


def check(decision: Decision) -> None:
    """Every log refuses an execution without its row at once."""
    if decision.expected == 0 and decision.row is None:
        raise ValueError(f"the first decision of {decision.execution_id} comes without its row")


def overtaken(decision: Decision, found: int | None) -> VersionConflict:
    """The refusal of a decision that comes too late."""
    if decision.holds and found == decision.expected == 0:
        return PlaceLost(
            f"execution {decision.execution_id} has no place under the limit, or none any more, "
            "and was not recorded; start it again"
        )
    stands = "elsewhere" if found is None else f"at {found}"
    why = f"is {stands}, not at {decision.expected}: another writer was first"
    if found == decision.expected:
        why = "belongs to another process by now"
    return VersionConflict(
        f"execution {decision.execution_id} {why}; load it again and decide again"
    )


def still_refused(decision: Decision, kind: type[NoetlError]) -> NoetlError:
    """The refusal of what was decided on top of something that never happened."""
    return kind(
        f"execution {decision.execution_id}: an earlier decision was not written, so the one "
        f"after {decision.expected} is not either; load it again and decide again"
    )
