"""Where decisions are kept: the one truth about every execution (EVT-3)."""

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import msgspec

from noetl.ports.commit import Commit

if TYPE_CHECKING:
    from noetl.ports.limits import LimitClaim

Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""What comes from elsewhere and goes into a column: every database and every JSON can hold it."""


class ExecutionRow(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What lists and filters see of an execution, kept beside the log in the same commit."""

    execution_id: str
    path: str
    digest: str
    status: str
    started_at: int
    updated_at: int
    version: str | None = None
    finished_at: int | None = None
    parent_execution_id: str | None = None
    owner: str | None = None
    """The process that decides for it; None once it has ended."""
    error: str | None = None
    """Why it failed; of one that completed, what went wrong on the way and did not fail it."""
    limit_key: str | None = None
    asks: int | None = None
    """1 while a wait of it asks a person something (WAIT-7)."""
    queued_at: int | None = None
    """Since when it is parked: queued, on disk alone, and no server's (see `LimitClaims.park`)."""
    wake_at: int | None = None
    """When something that it waits for is due (ms): any server finds it then, unloaded."""
    origin_execution_id: str | None = None
    """The execution that it was restarted from, and the `seq` up to which it shares its log."""
    origin_seq: int | None = None
    seq: int = 0


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """All that follows from one input: one row of the log."""

    execution_id: str
    expected: int
    """The `seq` at which the execution must stand (0: it must not exist yet)."""
    last: int
    """The `seq` of the last event; the first is `expected + 1`."""
    at: int
    """Milliseconds since 1970."""
    events: bytes
    """The events as one JSON array."""
    row: ExecutionRow | None = None
    """The execution's row where it changes (always with the first decision)."""
    snapshot: bytes | None = None
    """The state after this decision, when the tail has grown long enough."""
    notes: tuple[int, ...] = ()
    """The notes of the inbox that it obeys: they go with its commit, and stay if it is refused."""
    releases: tuple[str, ...] = ()
    """Claims on limits that end with its commit: step runs, or the execution with all (`""`)."""
    holds: bool = False
    """It begins the execution under the place that this one holds: no place, no beginning."""
    claim: "LimitClaim | None" = None
    """
    The place is taken with its commit, where the execution holds none yet, nobody waits under the
    limit and there is room. It counts nothing in a time (`LimitClaim.count`).
    """


class LogRow(msgspec.Struct, frozen=True):
    """One stored decision."""

    first: int
    last: int
    at: int
    events: bytes


class Snapshot(msgspec.Struct, frozen=True):
    """The state as it stood at `seq`."""

    seq: int
    body: bytes


class EventLog(Protocol):
    """
    Contract, checked for every adapter by tests/contracts/test_event_log.py:
    - `append` takes effect at once in order of calls, and its answer comes after the commit;
      it is all or nothing per decision;
    - it raises VersionConflict unless the execution stands at `expected`, and where another
      process owns it by now (promise 4); then all later queued decisions of that execution are
      refused too, and those of other executions are not touched;
    - it raises PlaceLost, a VersionConflict, where an execution would begin under a limit without
      holding its place (`Decision.holds`): whoever wrote it was taken for dead, and the place may
      be another's (LIMIT-3). One that brings its claim (`Decision.claim`) is refused in the same
      way where somebody waits under that limit, where there is no room for all that a commit
      begins, and where another counts just then: it asks for its place as usual. A claim whose
      place the same commit gives back leaves nothing behind;
    - it raises LogUnavailable where nothing could be written (disk full, read-only); nothing of
      that decision is visible then, and later ones of the execution are refused;
    - the notes that a decision obeys leave the inbox in its commit, so that no death in between
      can lose an order or make it come twice;
    - what is refused stays refused, until `forget` says that the caller has loaded the execution
      again: decisions appended before it were made on something that never happened;
    - with `alone` the caller says that nothing else waits: the adapter may commit inline;
    - `read` returns rows in order, beginning with the row that contains `after + 1`;
    - what was read once never changes.
    """

    def append(self, decision: Decision, *, alone: bool = False) -> Commit: ...

    async def read(
        self, execution_id: str, *, after: int = 0, limit: int = 1000
    ) -> Sequence[LogRow]: ...

    async def snapshot(self, execution_id: str) -> Snapshot | None: ...

    def forget(self, execution_id: str) -> None: ...


class Executions(Protocol):
    """
    Reads for lists and pages; never folds a log.

    - `find` is None when there is no such execution;
    - `page` is newest first; `before` is the `execution_id` that ended the page before. `since`
      and `until` (ms) bound the start: from `since` on, before `until`; then newest means started
      last. What a page costs does not grow with the history;
    - `asking` are those that may wait for people, newest first, `before` as for `page`; what it
      costs does not grow with those that do not;
    - `children` are all of a parent, ended or not, oldest first;
    - `starting` are those whose id begins with a text, newest first;
    - `unfinished` are those of the named ones that exist and have not ended, in any order;
    - `count` is exact for those that have not ended; of the others a large home may estimate it.
    """

    async def find(self, execution_id: str) -> ExecutionRow | None: ...

    async def page(
        self,
        *,
        status: str | None = None,
        path: str | None = None,
        parent: str | None = None,
        since: int | None = None,
        until: int | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[ExecutionRow]: ...

    async def asking(
        self, *, before: str | None = None, limit: int = 50
    ) -> Sequence[ExecutionRow]: ...

    async def children(self, execution_id: str) -> Sequence[ExecutionRow]: ...

    async def starting(self, prefix: str, *, limit: int = 50) -> Sequence[ExecutionRow]: ...

    async def unfinished(self, execution_ids: Sequence[str]) -> Sequence[str]: ...

    async def count(self, status: str) -> int: ...


class Playbooks(Protocol):
    """The text of every playbook that ever ran, by digest: a run keeps the text it began with."""

    async def keep(self, digest: str, path: str, text: str, folder: str | None) -> None: ...

    async def text(self, digest: str) -> tuple[str, str | None] | None:
        """The text and the folder of its file."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A message to the owner of an execution, left by another process (`cancel`, `pause`)."""

    note_id: int
    execution_id: str
    kind: str
    fields: dict[str, Any] = {}


class Inbox(Protocol):
    """
    Messages between processes that share a home.

    - `leave` is durable before it returns;
    - `waiting` are the notes for the executions that this process owns, oldest first. They stay,
      and are in the next answer too, until a decision that obeys them is committed
      (`Decision.notes`) or `discard` takes away those that need none. Discarding what is gone is
      nothing;
    - `waits` is True as soon as there may be a note that `waiting` has not shown yet: one left by
      any process for what this one owns wakes it; False when the seconds have passed without one.
      A note that waited for an owner is found after a claim or an adoption, not announced, and a
      caller looks after every wait, for an announcement can be lost.
    """

    async def leave(self, execution_id: str, kind: str, fields: dict[str, Any]) -> None: ...

    async def waiting(self) -> Sequence[Note]: ...

    async def discard(self, note_ids: Iterable[int]) -> None: ...

    async def waits(self, timeout: float) -> bool: ...


def clock() -> float:
    """Seconds by a clock that nobody sets, and that counts while the machine sleeps, too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Adoption(msgspec.Struct, frozen=True, kw_only=True):
    """What a process has taken over, and the term in which it did."""

    term: int
    """0 where there was nothing to adopt."""
    execution_ids: list[str]


class Owners(Protocol):
    """
    Which process decides for which execution.

    - `claim` makes this process the owner if nobody is, or if the owner is dead; it raises
      HomeInUse, naming the live owner, otherwise. It is True where it took over from a dead one;
    - `owned` are the executions that have not ended and that this process owns, oldest first, as
      they are committed;
    - `sure_until` is a time of `clock`: before it no other process can have taken over what this
      one owns (inf where others see its death itself, and where it owns nothing yet). Once it has
      passed, nothing may rest on being the owner;
    - `lapses` counts how often that time passed before this process was known to be alive again,
      as it makes itself by its own effort: what it believes to own must then be compared with
      `owned`;
    - `release` gives up what this process owns;
    - `holder` names the live process that owns an execution; None where nobody does, or the
      owner is dead; `owner_of` is the same with its token, which `me` is to this process;
    - `adopt` makes this process the owner of up to `limit` executions that have not ended, are
      not parked, and whose owner is nobody or dead, oldest first; of several that adopt at once
      each execution goes to one;
    - `term` draws a number that is larger than all drawn before, by any process, for good; an
      adoption that took something has drawn one too;
    - `leave` gives up all that this process owns at once.
    """

    @property
    def me(self) -> str: ...

    @property
    def sure_until(self) -> float: ...

    @property
    def lapses(self) -> int: ...

    async def claim(self, execution_id: str) -> bool: ...

    async def owned(self) -> list[str]: ...

    async def release(self, execution_id: str) -> None: ...

    async def holder(self, execution_id: str) -> str | None: ...

    async def owner_of(self, execution_id: str) -> str | None: ...

    async def adopt(self, limit: int) -> Adoption: ...

    async def term(self) -> int: ...

    async def leave(self) -> None: ...


class PrintedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that a task printed."""

    execution_id: str
    step: str
    task_run_id: str
    attempt: Number
    at: Number
    stream: str
    text: str


class Printed(Protocol):
    """
    What tasks printed. Kept with the next commit, or within a second; not part of the truth.

    `read` gives them in the order in which they came, from the one after the first `skip` on.
    """

    def keep(self, line: PrintedLine) -> None: ...

    async def read(
        self, execution_id: str, *, step: str | None = None, skip: int = 0, limit: int = 10_000
    ) -> Sequence[PrintedLine]: ...
