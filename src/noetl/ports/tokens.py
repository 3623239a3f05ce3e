"""Who may use the API: its tokens, of which only digests are kept."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class TokenRow(msgspec.Struct, frozen=True, kw_only=True):
    """A token at rest: what it may do, and the SHA-256 of what its holder sends."""

    token_id: str
    name: str
    role: str
    digest: str
    created_at: int
    """Milliseconds since 1970, as the other times."""
    expires_at: int | None = None
    revoked_at: int | None = None


class Tokens(Protocol):
    """
    Contract, checked for every adapter by tests/contracts/test_tokens.py:
    - `add` is durable when it returns; adding the same row again changes nothing, and ids and
      digests are unique: another row under one that is taken raises ValueError;
    - `find` sees what any process added or revoked before; expired and revoked ones are found
      too, for the caller to judge; None where there is none;
    - `all` is in the order of their making;
    - `revoke` says whether there is such a token; the time of the first revocation stays.
    """

    async def add(self, row: TokenRow) -> None: ...

    async def find(self, digest: str) -> TokenRow | None: ...

    async def all(self) -> Sequence[TokenRow]: ...

    async def revoke(self, token_id: str) -> bool: ...
