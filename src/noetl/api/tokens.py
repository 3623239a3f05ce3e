"""Bearer tokens: how one is made, and whether one is good. Only digests are kept."""

import hashlib
import hmac
import secrets
import time

from noetl.api.rows import view_of
from noetl.api.types import Role, TokenMade
from noetl.ports.tokens import TokenRow, Tokens

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


async def make_token(
    tokens: Tokens, name: str, role: Role, *, expires_in: float | None = None
) -> TokenMade:
    """A new token, good for so many seconds, or until it is revoked."""
    now = int(time.time() * 1000)
    until = None if expires_in is None else now + int(expires_in * 1000)
    text, row = new_token(name, role, now_ms=now, expires_at=until)
    await tokens.add(row)
    return view_of(TokenMade, row, token=text)


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
