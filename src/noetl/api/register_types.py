"""What the API takes and answers about the registers: kept outcomes, orders, pools."""

from typing import Annotated

import msgspec

from noetl.api.trigger_types import Name
from noetl.ports.audit import Result


class CacheView(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome that is kept; the outcome itself is in the log of its execution."""

    path: str
    task: str
    """Its step and its label."""
    key: str
    execution_id: str
    """Whose outcome it is."""
    kept_at: str
    expires_at: str
    size: int
    """Bytes in the database; what is large is stored as a result."""


class CachePage(msgspec.Struct, frozen=True, kw_only=True):
    """Kept outcomes, the latest first."""

    entries: list[CacheView]


class CacheClearRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which entries to remove; without a key of this, all."""

    path: Name | None = None
    task: Name | None = None
    key: Name | None = None


class CacheCleared(msgspec.Struct, frozen=True, kw_only=True):
    """How many entries were removed."""

    removed: int


class AuditView(msgspec.Struct, frozen=True, kw_only=True):
    """One order, done or refused."""

    noted_at: str
    who: str
    """The name of a token or the user of the machine; empty where auth is off."""
    role: str
    what: str
    about: str
    result: Result
    """`unknown`: the server failed, and may have carried it out before that."""
    detail: str


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """Orders, the latest first."""

    orders: list[AuditView]


class PoolRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limit of a pool (LIMIT-1)."""

    at_once: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class PoolLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A pool with a limit."""

    name: str
    at_once: int
    """Parts that its workers run at the same time, at the most."""
    set_at: str


class PoolLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Pools with a limit, by name."""

    pools: list[PoolLimit]
