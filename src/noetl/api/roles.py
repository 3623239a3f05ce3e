"""Who may do what: five roles, and what each of them includes."""

from typing import Literal

from noetl.api.types import Role

Access = Role | Literal["open"]
"""What a route asks for; `open` is said of a route like any other, never assumed."""

INCLUDES: dict[str, frozenset[Access]] = {
    "viewer": frozenset({"viewer"}),
    "operator": frozenset({"viewer", "operator"}),
    "author": frozenset({"viewer", "operator", "author"}),
    "admin": frozenset({"viewer", "operator", "author", "admin"}),
    "worker": frozenset({"worker"}),
}
"""Role → the access that it gives. A worker's token opens nothing but what workers need."""


def allows(role: str, access: Access) -> bool:
    """Whether a token of this role opens a route; a role that nobody knows opens none."""
    return access in INCLUDES.get(role, frozenset())
