"""Who ordered what: a register that only grows."""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

Result = Literal["done", "refused", "unknown"]
"""`unknown`: the server failed, and may have carried it out before that."""


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    """One order, and whether it was carried out. It never holds a value that was given with it."""

    at: int
    """When (ms)."""
    who: str
    """The name of a token, or the user of the machine."""
    role: str = ""
    """The role of the token; empty where nobody asked for one."""
    what: str
    """A word such as `cancel` or `token.revoke`."""
    about: str = ""
    """What it was for: an id, a path, a name."""
    result: Result = "done"
    detail: str = ""
    """Of a refusal: why."""


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows; what is None does not matter."""

    since: int | None = None
    until: int | None = None
    """Both in ms; `until` itself is not included."""
    who: str | None = None
    what: str | None = None


class Audit(Protocol):
    """
    Contract, checked for every adapter by tests/contracts/test_audit.py:
    - `note` is durable when it returns; nothing changes or removes a row;
    - `page` are rows as a filter wants them, the latest first.
    """

    async def note(self, row: AuditRow) -> None: ...

    async def page(self, wanted: AuditFilter, *, limit: int = 50) -> Sequence[AuditRow]: ...
