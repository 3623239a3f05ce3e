"""Bearer tokens: how one is made, and whether one is good. Only digests are kept."""

import hashlib
import hmac
import secrets

from noetl.api.types import Role
from noetl.ports.tokens import TokenRow

PREFIX = "noetl_"
"""So that a token that was lost somewhere can be recognised for what it is."""
LONGEST = 200


def new_token(
    name: str, role: Role, *, now_ms: int, expires_at: int | None = None
) -> tuple[str, TokenRow]:
    """The text for its holder, which is nowhere kept, and the row for the store."""
    text = PREFIX + secrets.token_urlsafe(32)
    row = TokenRow(
        token_id=secrets.token_hex(8),
        name=name,
        role=role,
        digest=digest_of(text),
        created_at=now_ms,
        expires_at=expires_at,
    )
    return text, row


def digest_of(text: str) -> str:
    # No slow hash: the text is 256 bits of chance, there is nothing to guess.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_good(row: TokenRow | None, digest: str, now_ms: int) -> bool:
    """Whether the token opens anything now."""
    return (
        row is not None
        and hmac.compare_digest(row.digest, digest)
        and row.revoked_at is None
        and (row.expires_at is None or now_ms < row.expires_at)
    )
