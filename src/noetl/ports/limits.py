"""How much runs at once, over all executions and servers (LIMIT)."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

COUNTED = 1001
"""The place of everything that has a thousand before it, as `take` answers it."""


UNBEGUN = 60_000
"""Milliseconds after which a claim whose execution does not exist ends, though its process lives:
the start failed, and nobody came again. One that is only slow asks again (`Decision.holds`)."""


class LimitClaim(msgspec.Struct, frozen=True, kw_only=True):
    """What wants to begin under a limit: an execution, or one run of a step."""

    execution_id: str
    holder: str = ""
    """The step run; empty: the whole execution."""
    group: str
    """What the limit is on: a playbook, or a step of one."""
    key: str = ""
    """What is counted apart within the group."""
    at_once: int | None = None
    total: int | None = None
    count: int | None = None
    seconds: float = 0.0
    priority: int = 0


class LimitPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that waits or holds, as it is shown."""

    execution_id: str
    holder: str
    group: str
    key: str
    place: int
    """0: it holds its place; else how many go before it, and one."""
    since: int
    """When it began to wait, or to hold (ms)."""


class LimitClaims(Protocol):
    """
    Contract, checked for every adapter by tests/contracts/test_limits.py:
    - `take` makes the claims and answers with the place of each: 0 where it may begin, else its
      place in the queue, of which it counts a thousand (`places` counts all). A claim that is
      there already keeps what it has, so asking twice is asking once. Each claim has an answer, one
      that another ends meanwhile too: that it waits;
    - what is granted is never more than the limits of the claims allow, whoever asks at the same
      time (LIMIT-3): `at_once` and `count` in `seconds` hold for each key of a group, `total` for
      the group;
    - the next one is that of the highest priority, then the keys take turns, then the oldest
      (LIMIT-4); nothing that may begin waits for one that may not;
    - `grant` lets begin whatever may begin by now, and names it; None: nothing waited anywhere;
    - `granted` names what was granted lately, so that each server finds what waits with it;
    - `holders` are the executions with a claim under a key, the oldest claim first;
    - `park` leaves queued executions of this process to the home, where their claim waits and no
      note does, and names them: nobody owns or adopts such a one until its claim is granted or
      gone, a note is left for it, or somebody claims it. Then it is an orphan like any other, so
      that nothing is forgotten;
    - `holding` are executions that hold a place under a key, or under any key (None), up to so
      many, the oldest grant first;
    - `withdraw` ends what an execution waits for and leaves what it holds: another server may have
      begun it under that;
    - a claim ends with the decision that releases it (`Decision.releases`), or by `release`; with
      `abandoned` end those whose execution does not exist though the process has died or the claim
      is older than `UNBEGUN`, and what was claimed for an execution while it ended. None of them
      ends between the look of a decision that `holds` it and its commit.
    """

    async def take(self, claims: Sequence[LimitClaim]) -> list[int]: ...

    async def grant(self) -> list[tuple[str, str]] | None: ...

    async def granted(self) -> list[tuple[str, str]]: ...

    async def park(self, execution_ids: Sequence[str]) -> list[str]: ...

    async def release(self, execution_id: str, holder: str = "") -> None: ...

    async def withdraw(self, execution_id: str) -> None: ...

    async def abandoned(self) -> int: ...

    async def holders(self, group: str, key: str) -> list[str]: ...

    async def holding(self, group: str, key: str | None, limit: int) -> list[str]: ...

    async def places(self, execution_id: str) -> list[LimitPlace]: ...
