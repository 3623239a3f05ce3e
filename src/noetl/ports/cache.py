"""Outcomes that are kept for later runs of the same task (CACHE-1)."""

import hashlib
from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec


class CacheIdentity(msgspec.Struct, frozen=True):
    """What an entry is known by: another text of the task is another entry (decision 0066)."""

    path: str
    """Of the playbook."""
    task: str
    """Its step and its label."""
    key: str
    fingerprint: str
    """Of what the task does."""

    @property
    def entry_id(self) -> str:
        return hashlib.sha256("\0".join(msgspec.structs.astuple(self)).encode()).hexdigest()


class CacheEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome that is kept. Times are milliseconds since 1970."""

    path: str
    task: str
    key: str
    fingerprint: str
    execution_id: str
    """Whose outcome it is."""
    kept_at: int
    expires_at: int
    size: int
    """Of `outcome`, in bytes."""
    outcome: bytes = b""
    """As `codec.encode` writes it, without its `meta`; what is large is in there by reference."""

    @property
    def identity(self) -> CacheIdentity:
        return CacheIdentity(self.path, self.task, self.key, self.fingerprint)


class CacheFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries; what is None does not matter."""

    path: str | None = None
    task: str | None = None
    key: str | None = None


class CacheEntries(Protocol):
    """
    Contract, checked for every adapter by tests/contracts/test_cache.py:
    - `find` is the entry with this identity whose time has not come by `now`, or None;
    - `keep` makes the entry, or replaces it; it refers to bodies of the executions `sources`;
    - `use` says that an execution refers to bodies of `sources` from now on, as an entry did;
    - `page` are entries that live at `now`, the latest first, without their outcomes;
    - `clear` removes those that a filter names, `expire` those whose time has come by `now`; both
      say how many;
    - `needed` are the executions whose bodies an entry, or an execution that is still there, refers
      to. Retention leaves their bodies alone (`Removals.left`). One that nothing refers to any more
      is free an hour later, with the next `expire`.
    """

    async def find(self, identity: CacheIdentity, now: int) -> CacheEntry | None: ...

    async def keep(self, entry: CacheEntry, sources: Collection[str]) -> None: ...

    async def use(self, execution_id: str, sources: Collection[str]) -> None: ...

    async def page(
        self, wanted: CacheFilter, *, now: int, limit: int = 50
    ) -> Sequence[CacheEntry]: ...

    async def clear(self, wanted: CacheFilter) -> int: ...

    async def expire(self, now: int) -> int: ...

    async def needed(self) -> frozenset[str]: ...


GRACE = 3_600_000
"""Milliseconds for which what nothing refers to is left: whoever makes an entry says so first."""


def user_of(entry: CacheEntry) -> str:
    """Who refers to the bodies of an entry: another outcome under the same key is another user."""
    return f"{entry.identity.entry_id}/{entry.execution_id}"
