"""Who may use the API: its tokens, of which only digests are kept."""

import hashlib
import hmac
from collections.abc import Sequence
from typing import Protocol

import msgspec

TAG = 8
"""Characters of a token's digest with which the names of its workers end."""


class TokenRow(msgspec.Struct, frozen=True, kw_only=True):
    """A token at rest: what it may do, and the SHA-256 of what its holder sends."""

    token_id: str
    name: str
    role: str
    """With the pool, for a worker's (`api.roles`)."""
    digest: str
    created_at: int
    """Milliseconds since 1970, as the other times."""
    expires_at: int | None = None
    revoked_at: int | None = None


def digest_of(text: str) -> str:
    """What is kept of a token. No slow hash: it is 256 bits of chance, nothing to guess."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


BETWEEN = "@"
"""Between the role of a worker's token, as it is kept, and its pool (decision 0050)."""
WORKER = "worker"


def split_role(role: str) -> tuple[str, str | None]:
    """Role and pool; tokens of workers that were made without a pool work for any."""
    name, _, pool = role.partition(BETWEEN)
    return name, pool or None


HOME = "home"
"""How the id of a home's token begins; it is in no store, but its sessions are."""


def session_of(row: TokenRow, part: str) -> str:
    """The id of a session: whoever revokes the token that made it finds it by its own."""
    return f"{row.token_id}.{part}"


def maker_of(row: TokenRow) -> str | None:
    """The id of the token that began this session; None for what is a token itself."""
    maker, _, part = row.token_id.rpartition(".")
    return maker if part and maker else None


def is_good(row: TokenRow | None, digest: str, now_ms: int) -> bool:
    """Whether the token opens anything now."""
    return (
        row is not None
        and hmac.compare_digest(row.digest, digest)
        and row.revoked_at is None
        and (row.expires_at is None or now_ms < row.expires_at)
    )


class Tokens(Protocol):
    """
    Contract, checked for every adapter by tests/contracts/test_tokens.py:
    - `add` is durable when it returns; adding the same row again changes nothing, and ids and
      digests are unique: another row under one that is taken raises ValueError;
    - `find` sees what any process added or revoked before; expired and revoked ones are found
      too, for the caller to judge; None where there is none;
    - `all` is in the order of their making;
    - `revoke` says whether there is such a token; the time of the first revocation stays;
    - `forget_sessions` removes those that were revoked or are over at `now_ms`, and says how many.
    """

    async def add(self, row: TokenRow) -> None: ...

    async def find(self, digest: str) -> TokenRow | None: ...

    async def all(self) -> Sequence[TokenRow]: ...

    async def revoke(self, token_id: str) -> bool: ...

    async def forget_sessions(self, now_ms: int) -> int: ...
