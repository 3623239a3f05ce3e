"""How each trigger stands: paused or not, what it started last, when it is due (START-1)."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

WATCH = ":ends"
"""The path of the row that says up to when ended executions were looked through (START-6)."""


class TriggerRow(msgspec.Struct, frozen=True, kw_only=True):
    """One registered trigger. Times are milliseconds since 1970."""

    path: str
    kind: str
    version: int
    """Of its text in the catalog."""
    paused: bool = False
    since: int = 0
    """When this version was registered, or resumed: nothing before it is its to start."""
    planned_at: int | None = None
    """The first planned time that nobody has dealt with; of the watch the place where it stands."""
    due_at: int | None = None
    """When there is something to do; None where nothing comes by itself."""
    last_at: int | None = None
    """What the last start was for."""
    last_execution_id: str | None = None
    skipped_at: int | None = None
    skipped_why: str | None = None
    waits_for: str | None = None
    """The execution that a planned time waits for (`overlap: queue`)."""


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a call or a message: an execution, or a reason why not."""

    at: int
    execution_id: str | None = None
    why: str | None = None


class EndedExecution(msgspec.Struct, frozen=True, kw_only=True):
    """An execution that has ended, as far as triggers look at it."""

    execution_id: str
    path: str
    status: str
    finished_at: int


class Triggers(Protocol):
    """
    Contract, checked for every adapter by tests/contracts/test_triggers.py:
    - `put` makes the row of a path, or replaces all of it, and nobody has taken it then; `remove`
      says whether it was there;
    - `page` is in the order of paths, of one kind where one is asked for, without the watch; one
      kind costs the same, however many there are of others;
    - `take` are up to `limit` rows that are due and not paused, the one that is due longest first;
      until the time `until` nobody else is given them. What is taken costs the same, however many
      rows are not due;
    - `settle` replaces the row as it was taken by what it came to and gives it back, and says True;
      where somebody changed it meanwhile (another version, paused, another planned time) nothing
      is written, and it says False;
    - `note` sets the fields of the last start, or of the last skip, and no others;
    - `ended` are executions by the time of their end, those of one time by their ids: from the
      time `since` on, behind the id `after` in that time. What it costs does not grow with those
      that ended before.
    """

    async def put(self, row: TriggerRow) -> None: ...

    async def find(self, path: str) -> TriggerRow | None: ...

    async def page(
        self, *, kind: str | None = None, after: str | None = None, limit: int = 50
    ) -> Sequence[TriggerRow]: ...

    async def take(self, now: int, until: int, limit: int) -> Sequence[TriggerRow]: ...

    async def settle(self, taken: TriggerRow, made: TriggerRow) -> bool: ...

    async def note(self, path: str, noted: Noted) -> None: ...

    async def remove(self, path: str) -> bool: ...

    async def ended(
        self, since: int, *, after: str = "", limit: int = 100
    ) -> Sequence[EndedExecution]: ...
