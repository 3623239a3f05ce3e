"""What is set for pools of workers, over all servers (LIMIT-1)."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

OF_POOLS = ":pool "
"""What the groups of limits on pools begin with, and no path of a playbook."""

PLACE = "part "
"""What the holders of places in pools begin with; other holders are step runs."""


class PoolRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pool with a limit."""

    name: str
    at_once: int
    """Parts that its workers run at the same time, at the most."""
    set_at: int
    """When it was set (ms)."""


class Pools(Protocol):
    """
    Contract, checked for every adapter by tests/contracts/test_pools.py:
    - `put` sets a pool, or sets it anew: what waits for a place in it is bound by the new number;
    - `remove` says whether it was set;
    - `all` are in the order of their names.
    """

    async def put(self, row: PoolRow) -> None: ...

    async def remove(self, name: str) -> bool: ...

    async def all(self) -> Sequence[PoolRow]: ...


def group_of(pool: str) -> str:
    """What claims on places in a pool are made under (`ports.limits`)."""
    return f"{OF_POOLS}{pool}"
