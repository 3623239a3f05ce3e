"""Who may do what: six roles, and what each of them includes."""

import re
from typing import Literal

from noetl.api.types import Role
from noetl.errors import ServerRefused
from noetl.ports.link import ANYBODY, Caller
from noetl.ports.tokens import BETWEEN, TAG, WORKER, TokenRow, split_role

Access = Role | Literal["open"]
"""What a route asks for; `open` is said of a route like any other, never assumed."""

INCLUDES: dict[str, frozenset[Access]] = {
    "viewer": frozenset({"viewer"}),
    "approver": frozenset({"viewer", "approver"}),
    "operator": frozenset({"viewer", "approver", "operator"}),
    "author": frozenset({"viewer", "approver", "operator", "author"}),
    "admin": frozenset({"viewer", "approver", "operator", "author", "admin"}),
    "worker": frozenset({"worker"}),
}
"""Role → the access that it gives. A worker's token opens nothing but what workers need."""


POOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def allows(role: str, access: Access) -> bool:
    """Whether a token of this role opens a route; a role that nobody knows opens none."""
    return access in INCLUDES.get(split_role(role)[0], frozenset())


def bound(role: Role, pool: str | None) -> str:
    """The role as it is kept: a worker's is bound to its pool."""
    if role != WORKER:
        if pool is not None:
            raise ServerRefused("a pool goes with role worker", code="invalid", status=422)
        return role
    return f"{role}{BETWEEN}{pool_named('default' if pool is None else pool)}"


def pool_named(pool: str) -> str:
    """The name of a pool, if it can be one."""
    if POOL.fullmatch(pool) is None:
        raise ServerRefused(f"'{pool[:100]}' is not a valid pool name", code="invalid", status=422)
    return pool


def caller_of(row: TokenRow | None) -> Caller:
    """Which workers may come with a token; without auth there is none, and all may."""
    return ANYBODY if row is None else Caller(row.digest[:TAG], split_role(row.role)[1])
