"""The keys with which servers and workers sign what they say over NATS (decision 0049)."""

import time
from hashlib import blake2b
from typing import TYPE_CHECKING

from noetl.errors import CredentialUnreadable
from noetl.keychain.door import KeychainDoor
from noetl.ports.link import Caller, LinkKey
from noetl.ports.tokens import TAG, WORKER, Tokens, digest_of, is_good, split_role
from noetl.settings import Settings

if TYPE_CHECKING:
    from noetl.keychain.box import Key

TOKEN, SHARED = "t", "k"
"""How names of keys begin: one that derives from a token, or from the key of the credentials."""
DIGEST, NAME = 64, 32
"""Characters of a token's digest, and of them those that name its key."""


def token_key(text: str) -> LinkKey:
    """The key of whoever has this token; neither name nor digest lead back to it."""
    digest = digest_of(text)
    given = text.encode("utf-8", "surrogatepass")
    secret = blake2b(given, digest_size=32, person=b"noetl link key").digest()
    return LinkKey(name_of(digest), secret, Caller(digest[:TAG]))


def name_of(digest: str) -> str:
    return f"{TOKEN}:{digest[:NAME]}"


def shared_key(key: "Key", pool: str) -> LinkKey:
    """The key of a pool, for whoever has the key of the credentials."""
    secret = key.derived(f"link of pool {pool}".encode())
    tag = blake2b(secret, digest_size=TAG // 2, person=b"noetl tag").hexdigest()
    return LinkKey(f"{SHARED}:{key.id}:{pool}", secret, Caller(tag, pool))


def worker_key(settings: Settings) -> LinkKey | None:
    """What a worker signs with: its token, else the key that it shares with the servers."""
    if settings.token is not None:
        return token_key(settings.token)
    from noetl.keychain.keys import KeySource  # ciphers only where there is a key

    keys = KeySource(None)
    return shared_key(keys.ring.newest, settings.pool) if keys.shared else None


async def keep_token_key(keychain: KeychainDoor, text: str) -> None:
    """Servers keep the key of a worker's token sealed; of the token itself, a digest."""
    made = token_key(text)
    await keychain.opened.store.keep_own(made.name, digest_of(text).encode() + made.secret)


async def forget_token_key(keychain: KeychainDoor, digest: str) -> None:
    """The token is good no more."""
    await keychain.opened.store.forget_own(name_of(digest))


class LinkKeys:
    """Finds the keys of workers for a server."""

    def __init__(self, keychain: KeychainDoor, tokens: Tokens) -> None:
        self._keychain = keychain
        self._tokens = tokens

    async def find(self, name: str) -> LinkKey | None:
        """None where there is none, or its token has expired or was revoked."""
        kind, _, rest = name.partition(":")
        if kind == TOKEN:
            return await self._of_token(name)
        key_id, _, pool = rest.partition(":")
        try:
            return shared_key(self._keychain.opened.store.key(key_id), pool)
        except CredentialUnreadable:
            return None

    async def _of_token(self, name: str) -> LinkKey | None:
        kept = await self._keychain.opened.store.own(name)
        if kept is None:
            return None
        digest, secret = kept[:DIGEST].decode(), kept[DIGEST:]
        row = await self._tokens.find(digest)
        role, pool = split_role("" if row is None else row.role)
        if role != WORKER or not is_good(row, digest, int(time.time() * 1000)):
            return None
        return LinkKey(name, secret, Caller(digest[:TAG], pool))
