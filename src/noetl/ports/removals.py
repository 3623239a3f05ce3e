"""How executions leave the storage: out of the lists at once, the rest bit by bit (KEEP-1)."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class EndedRoot(msgspec.Struct, frozen=True, kw_only=True):
    """An execution that has ended and whose parent is not there, as far as retention looks."""

    execution_id: str
    path: str
    status: str
    finished_at: int
    digest: str
    """Of its playbook."""


class Removals(Protocol):
    """
    Contract, checked for every adapter by tests/contracts/test_removals.py:
    - `ended` are executions without a parent in this storage that ended before a time (ms), by
      their end, those of one time by their ids: from the time `since` on, behind the id `after`
      in that time. What it costs does not grow with those that ended before `since`;
    - `family` is an execution with all below it, the oldest first. It is empty where one of them
      is needed: it has not ended, or a restart outside of the family refers to it (RST-3);
    - `remove` takes a family out of all lists in one commit and names it; where it is needed by
      then, or gone, nothing happens and nothing is named;
    - `left` are removed executions that have rows or bodies left, removed before a time, the one
      that was removed first in front; none that a restart refers to, which was begun meanwhile,
      and none whose bodies kept outcomes refer to (`CacheEntries.needed`);
    - `clear` deletes up to `most` rows of a removed execution's log, and as many printed lines. It
      is True once there are none, and the execution is not `left` any more: its bodies go before;
    - `is_removed` knows removed executions until `forget` drops those of before a time (ms).
    """

    async def ended(
        self, before: int, *, since: int = 0, after: str = "", limit: int = 100
    ) -> Sequence[EndedRoot]: ...

    async def family(self, execution_id: str) -> list[str]: ...

    async def remove(self, execution_id: str) -> list[str]: ...

    async def left(self, before: int, *, limit: int = 100) -> list[str]: ...

    async def clear(self, execution_id: str, *, most: int = 1000) -> bool: ...

    async def is_removed(self, execution_id: str) -> bool: ...

    async def forget(self, before: int) -> int: ...
