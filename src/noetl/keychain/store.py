"""The registered credentials: encrypted before they are kept, opened when they are asked for."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from noetl.errors import CredentialMissing, CredentialUnreadable, SettingRefused
from noetl.keychain.box import Key, new_key
from noetl.keychain.fields import KIND, NAME, Fields, check, kind_of
from noetl.keychain.keys import KeySource
from noetl.ports.credentials import Credentials, SealedCredential

RESERVED = "$"
"""Names of the house's own keys begin with it."""
HANDED = "handed"
"""In place of the id of a key: a server has handed this one, and it is open."""
LOG_KEY, OWN = "$key", "$own"
"""Kinds of them: of recorded secrets, and of the servers alone."""


class CredentialSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What may be shown of a credential."""

    name: str
    kind: str
    key_id: str
    updated_at: int


class Rotated(msgspec.Struct, frozen=True, kw_only=True):
    """What a rotation came to."""

    key_id: str
    credentials: int
    """How many are encrypted with it."""
    unreadable: list[CredentialSummary]
    """Those that no key at hand opens: left as they are, in case their key turns up."""
    log_keys_lost: int
    """The same of keys for recorded secrets."""
    token_keys_lost: int
    """And of those that workers with a token of their own sign with."""


class Store:
    """The credentials of a home."""

    def __init__(
        self,
        credentials: Credentials,
        keys: KeySource,
        now: Callable[[], float] = time.time,
        *,
        lenient: bool = False,
    ) -> None:
        self._credentials = credentials
        self._keys = keys
        self._now = now
        self._lenient = lenient
        """
        Whether a key of recorded secrets that cannot be opened is replaced by one of our own, which
        nothing keeps: a worker without the servers' key has one while it lives.
        """
        self._log_keys: dict[str, Key] = {}
        self._newest: Key | None = None
        self._making = asyncio.Lock()

    # ── credentials ──────────────────────────────────────────────────────────────────────────

    async def add(self, name: str, kind: str, fields: Fields) -> None:
        """Register a credential, or replace the one of that name."""
        kind = kind_of(kind)
        if NAME.fullmatch(name) is None:
            raise CredentialMissing(
                f"{name!r} is not a valid credential name: "
                "expected letters, digits, '_', '-', '.', '/'"
            )
        if KIND.fullmatch(kind) is None:
            raise CredentialMissing(f"{kind!r} is not a kind: expected a word such as postgres")
        check(name, kind, fields)
        await self._keep(name, kind, msgspec.json.encode(fields))

    async def fields(self, name: str) -> tuple[str, Fields] | None:
        """Kind and fields of a registered credential; None without one."""
        row = None if name.startswith(RESERVED) else await self._credentials.find(name)
        if row is None:
            return None
        fields: Fields = msgspec.json.decode(self.opened(row))
        return row.kind, fields

    async def all(self) -> list[CredentialSummary]:
        """What is registered, by name."""
        return [
            CredentialSummary(
                name=row.name, kind=row.kind, key_id=row.key_id, updated_at=row.updated_at
            )
            for row in await self._credentials.all()
            if not row.name.startswith(RESERVED)
        ]

    async def remove(self, name: str) -> bool:
        return not name.startswith(RESERVED) and await self._credentials.remove(name)

    async def rotate(self, *others: "Store", lost: bool = False) -> Rotated:
        """
        A new key, and everything encrypted anew, in one transaction for each store of the key.

        Keys that nothing needs are dropped after that: whatever interrupts this, all that could be
        read can be read, and it may be run again. What cannot be opened stays and is named; a key
        that opens nothing at all is the wrong one, unless the right one is said to be `lost`.
        """
        stores = (self, *others)
        with self._keys.alone():
            rows = [row for one in stores for row in await one._credentials.all()]
            refuse_idle_key(self._keys, rows)
            if not lost:
                refuse_wrong_key(self._keys, rows)
            if not self._keys.fixed:
                self._keys.grow()
            newest = self._keys.reread().newest
            left = [row for one in stores for row in await one._reseal(newest)]
            for one in stores:
                await one._new_log_key()
            self._keys.shrink({row.key_id for row in left})
        kept = [row for one in stores for row in await one.all()]
        return Rotated(
            key_id=newest.id,
            credentials=sum(row.key_id == newest.id for row in kept),
            unreadable=[row for row in kept if row.key_id != newest.id],
            log_keys_lost=sum(row.kind == LOG_KEY for row in left),
            token_keys_lost=sum(row.kind == OWN for row in left),
        )

    async def _reseal(self, newest: Key) -> list[SealedCredential]:
        """Encrypt everything with this key; the answer is what no key at hand opens."""
        left: dict[str, SealedCredential] = {}

        def resealed(row: SealedCredential) -> SealedCredential:
            try:
                sealed = newest.seal(self.opened(row), about(row.name, row.kind))
            except CredentialUnreadable:
                left[row.name] = row
                return row
            return msgspec.structs.replace(row, key_id=newest.id, sealed=sealed)

        await self._credentials.rewrite(resealed)
        return list(left.values())

    # ── keys of the house ────────────────────────────────────────────────────────────────────

    async def keep_own(self, name: str, plain: bytes) -> None:
        """Something that is nobody's credential: no worker gets it, not even sealed."""
        await self._keep(f"{RESERVED}{name}", OWN, plain)

    async def own(self, name: str) -> bytes | None:
        row = await self._credentials.find(f"{RESERVED}{name}")
        return None if row is None or row.kind != OWN else self.opened(row)

    async def forget_own(self, name: str) -> None:
        await self._credentials.remove(f"{RESERVED}{name}")

    def key(self, key_id: str) -> Key:
        """One of the keys that seal credentials; CredentialUnreadable where it is not at hand."""
        return self._keys.find(key_id, "a message")

    # ── the key of recorded secrets (KEY-3) ──────────────────────────────────────────────────

    async def log_key(self) -> Key:
        """
        The key for values in the log. The log is never written again, so this key is not the
        home's own but kept among the credentials: a rotation encrypts it anew like them.
        """
        # Of many who want the first one at once one makes it, and nobody has it before it is kept.
        async with self._making:
            if self._newest is None:
                rows = [row for row in await self._credentials.all() if row.kind == LOG_KEY]
                if rows:
                    newest = max(rows, key=lambda row: (row.updated_at, row.name))
                    with suppress(*((CredentialUnreadable,) if self._lenient else ())):
                        self._newest = self._log_key_in(newest)
            return self._newest or await self._new_log_key()

    @property
    def has_log_key(self) -> bool:
        return self._newest is not None

    @property
    def known_log_key(self) -> Key:
        """The same for whoever cannot wait, after it was asked for once."""
        assert self._newest is not None, "the key is requested before a secret is learned"
        return self._newest

    async def log_key_of(self, key_id: str) -> Key:
        """The key of a value that is in the log already."""
        name = f"{RESERVED}{key_id}"
        if key_id in self._log_keys:
            return self._log_keys[key_id]
        row = await self._credentials.find(name)
        if row is None:
            raise CredentialUnreadable(
                f"a recorded secret needs the key {key_id}, which is not in this home"
            )
        return self._log_key_in(row)

    def _log_key_in(self, row: SealedCredential) -> Key:
        key_id = row.name.removeprefix(RESERVED)
        if key_id not in self._log_keys:
            plain = row.sealed if self._lenient and row.key_id == HANDED else self.opened(row)
            self._log_keys[key_id] = Key(plain)
        return self._log_keys[key_id]

    async def _new_log_key(self) -> Key:
        made = new_key()
        key = Key(made)
        if not self._lenient:
            await self._keep(f"{RESERVED}{key.id}", LOG_KEY, made)
        self._newest = self._log_keys[key.id] = key
        return key

    # ── sealing ──────────────────────────────────────────────────────────────────────────────

    async def _keep(self, name: str, kind: str, plain: bytes) -> None:
        if self._keys.absent:
            # A new key beside rows of another one would hide that the old one must come back.
            refuse_wrong_key(self._keys, await self._credentials.all())
            self._keys.make()
        while True:
            key = self._keys.reread().newest
            await self._credentials.keep(self._sealed(key, name, kind, plain))
            # A rotation in between has put its key first before it read what is kept.
            if self._keys.reread().newest.id == key.id:
                return

    def _sealed(self, key: Key, name: str, kind: str, plain: bytes) -> SealedCredential:
        return SealedCredential(
            name=name,
            kind=kind,
            key_id=key.id,
            sealed=key.seal(plain, about(name, kind)),
            updated_at=int(self._now() * 1000),
        )

    def opened(self, row: SealedCredential) -> bytes:
        """What is in it; CredentialUnreadable without its key."""
        what = f"credential '{row.name}'"
        return self._keys.find(row.key_id, what).open(row.sealed, about(row.name, row.kind))


def refuse_wrong_key(keys: KeySource, rows: Sequence[SealedCredential]) -> None:
    """Where something is sealed, a key must be at hand that opens some of it."""
    if rows and keys.absent:
        keys.find(rows[0].key_id, what_of(rows))
    if rows and not any(row.key_id in keys.ring for row in rows):
        raise CredentialUnreadable(
            f"no available key opens any of {what_of(rows)}: add the right one as a line of its "
            "own, or, if it is lost: noetl credential rotate --lost"
        )


def refuse_idle_key(keys: KeySource, rows: Sequence[SealedCredential]) -> None:
    """A key that seals nothing here seals something elsewhere, or nothing: it is not dropped."""
    if rows or keys.fixed:
        return
    if keys.absent:
        raise SettingRefused("there is no key and nothing is encrypted: there is nothing to rotate")
    raise SettingRefused(
        f"nothing here is encrypted with key {keys.reread().newest.id}, so a rotation would only "
        "drop it, and with it what it encrypts elsewhere: set NOETL_HOME and NOETL_DB to where "
        "that is"
    )


def about(name: str, kind: str) -> bytes:
    """What is bound to a sealed credential: moved to another name or kind it does not open."""
    return msgspec.json.encode(["credential", name, kind])


def what_of(rows: Sequence[SealedCredential]) -> str:
    """The sealed rows in words: the names of credentials, and keys of recorded secrets."""
    names = [f"'{row.name}'" for row in rows if not row.name.startswith(RESERVED)]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"credential {', '.join(names[:5])}{more}" if names else "the key of recorded secrets"


def shown(fields: dict[str, Any]) -> list[str]:
    """What may be shown of the fields: their names."""
    return sorted(fields)
