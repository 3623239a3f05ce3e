"""Bearer tokens: how one is made, and whether one is good. Only digests are kept."""

import secrets
import time

from noetl.api.roles import bound
from noetl.api.rows import View, view_of
from noetl.api.types import Role, TokenMade
from noetl.keychain.door import KeychainDoor
from noetl.node.link_keys import forget_token_key, keep_token_key
from noetl.ports.tokens import WORKER, TokenRow, Tokens, digest_of, maker_of, split_role

PREFIX = "noetl_"
"""So that a token that was lost somewhere can be recognised for what it is."""
LONGEST = 200


def new_token(
    name: str, role: Role, *, now_ms: int, expires_at: int | None = None, pool: str | None = None
) -> tuple[str, TokenRow]:
    """The text for its holder, which is nowhere kept, and the row for the store."""
    text = PREFIX + secrets.token_urlsafe(32)
    row = TokenRow(
        token_id=secrets.token_hex(8),
        name=name,
        role=bound(role, pool),
        digest=digest_of(text),
        created_at=now_ms,
        expires_at=expires_at,
    )
    return text, row


async def make_token(
    tokens: Tokens,
    name: str,
    role: Role,
    *,
    expires_in: float | None = None,
    pool: str | None = None,
    keychain: KeychainDoor | None = None,
) -> TokenMade:
    """
    A new token, good for so many seconds, or until it is revoked. A worker's is of one pool; its
    key for NATS goes into the keychain.
    """
    now = int(time.time() * 1000)
    until = None if expires_in is None else now + int(expires_in * 1000)
    text, row = new_token(name, role, now_ms=now, expires_at=until, pool=pool)
    if role == WORKER and keychain is not None:
        await keep_token_key(keychain, text)
    await tokens.add(row)
    return shown_token(TokenMade, row, token=text)


async def revoke_token(tokens: Tokens, keychain: KeychainDoor, token_id: str) -> bool:
    """From now on it opens nothing, nor do its sessions; whether there is such a token."""
    known = await tokens.revoke(token_id)
    for row in await tokens.all():
        if maker_of(row) == token_id and row.revoked_at is None:
            known = await tokens.revoke(row.token_id)
        if row.token_id == token_id and split_role(row.role)[0] == WORKER:
            await forget_token_key(keychain, row.digest)
    return known


def shown_token(kind: type[View], row: TokenRow, **more: str) -> View:
    """What may be shown of a token."""
    role, pool = split_role(row.role)
    return view_of(kind, row, role=role, pool=pool, **more)
