"""Where registered credentials are kept, encrypted by whoever puts them there (KEY-2)."""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec


class SealedCredential(msgspec.Struct, frozen=True, kw_only=True):
    """A credential at rest. Name and kind can be read and are bound to the rest."""

    name: str
    kind: str
    key_id: str
    """Which key opens it."""
    sealed: bytes
    updated_at: int
    """Milliseconds since 1970."""


class Credentials(Protocol):
    """
    Contract, checked for every adapter by tests/contracts/test_credentials.py:
    - `keep` adds a credential or replaces the one of its name; it is durable when it returns;
    - `find` sees what was kept last, by this process or by another, and is None without one;
    - `all` is in the order of names;
    - `remove` says whether there was one;
    - `rewrite` replaces each by what `change` makes of it, all or none, and nobody writes between.
    """

    async def keep(self, credential: SealedCredential) -> None: ...

    async def find(self, name: str) -> SealedCredential | None: ...

    async def all(self) -> Sequence[SealedCredential]: ...

    async def remove(self, name: str) -> bool: ...

    async def rewrite(self, change: Callable[[SealedCredential], SealedCredential]) -> int: ...
