"""Credentials by name, resolved just before use: the playbook's, else registered ones (KEY-1)."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from noetl.errors import CredentialMissing, CredentialUnavailable
from noetl.keychain.asking import Asking
from noetl.keychain.fields import Fields, digest, kind_of, parsed, placed, register_aside
from noetl.keychain.oauth2 import AccessTokens
from noetl.keychain.once import Fetched, Once
from noetl.keychain.providers.aws import AwsProvider
from noetl.keychain.providers.gcp import GcpProvider
from noetl.keychain.providers.nearby import EnvironmentProvider, FileProvider
from noetl.keychain.providers.vault import VaultProvider
from noetl.keychain.seals import Seals
from noetl.keychain.store import Store
from noetl.masking import KNOWN
from noetl.playbook.model import KeychainEntry
from noetl.playbook.plan import Plan
from noetl.playbook.suggest import did_you_mean
from noetl.tools.bounds import Bounds

FAR = frozenset({"vault", "gcp", "aws"})
"""Providers that are asked over the network; `key#field` names one field of their secrets."""
FRESH = 300.0
"""Seconds for which an answer of theirs is used again."""
DEEPEST = 5
"""Credentials that may open one another in a row."""


class Keychain:
    """What a worker unlocks credentials with."""

    def __init__(
        self,
        store: Store,
        environment: Mapping[str, str] = os.environ,
        bounds: Bounds | None = None,
    ) -> None:
        self.store = store
        self.seals = Seals(store)
        self._asking = Asking()
        self._once = Once()
        self._masked: dict[str, tuple[int, Fields]] = {}
        """What was last unlocked by a name, and since when nothing became known or forgotten."""
        self._tokens = AccessTokens(self._asking, self._once)
        self._providers: dict[str, SecretProvider] = {
            "environment": EnvironmentProvider(environment),
            "file": FileProvider(bounds or Bounds()),
            "vault": VaultProvider(self._asking, self._once, environment),
            "gcp": GcpProvider(self._asking, self._once, environment),
            "aws": AwsProvider(self._asking, environment),
        }

    async def unlock(self, plan: Plan, name: str) -> Fields:
        """The fields of the credential `name`, its `kind` among them; all of it is masked."""
        await self.seals.make_ready()
        kind, fields = await self._found(plan, name, DEEPEST)
        if self._masked.get(name) != (KNOWN.generation, fields):
            before = KNOWN.generation
            await register_aside(fields)
            if KNOWN.generation == before:  # all of it was known, and nothing is forgotten since
                self._masked[name] = (before, fields)
        if kind == "oauth2":
            return {"kind": "bearer", "token": await self._tokens.token(name, fields)}
        return {**fields, "kind": kind}

    async def secret(self, plan: Plan, provider: str, name: str, auth: str | None) -> Any:
        """KEY-3: the value of a secret, a mapping if it has several fields."""
        await self.seals.make_ready()
        if provider == "store":
            fields = (await self._registered(name))[1]
        else:
            login = None if auth is None else (await self._found(plan, auth, DEEPEST))[1]
            fields = await self._fetched(provider, name, login)
        value = fields["value"] if fields.keys() == {"value"} else fields
        await register_aside(fields)
        return value

    async def close(self) -> None:
        await self._once.close()
        await self._asking.close()

    async def _found(self, plan: Plan, name: str, depth: int) -> tuple[str, Fields]:
        for entry in plan.keychain:
            if entry.name == name:
                return kind_of(entry.kind), await self._entry(plan, entry, depth)
        return await self._registered(name, [entry.name for entry in plan.keychain])

    async def _registered(self, name: str, entries: Sequence[str] = ()) -> tuple[str, Fields]:
        found = await self.store.fields(name)
        if found is None:
            known = list(entries)
            with suppress(CredentialUnavailable):  # a worker elsewhere sees no list of them
                known += [row.name for row in await self.store.all()]
            otherwise = (
                "add it to the playbook's `keychain`, or register it with "
                f"`noetl credential add {name}`"
            )
            raise CredentialMissing(
                f"no credential '{name}': {did_you_mean(name, known, otherwise)}"
            )
        return found

    async def _entry(self, plan: Plan, entry: KeychainEntry, depth: int) -> Fields:
        """What the entry's provider knows under its key; fields in the playbook come on top."""
        key = entry.key or entry.name
        own = {name: value for name, value in entry.fields.items() if name != "auth"}
        try:
            if entry.provider == "store":
                found = await self.store.fields(key)
                if found is None and (not own or entry.key):
                    await self._registered(key)
                return {**(found[1] if found else {}), **own}
            login = None
            if "auth" in entry.fields:
                if depth == 0:
                    raise CredentialMissing("its `auth` leads in a circle")
                login = (await self._found(plan, str(entry.fields["auth"]), depth - 1))[1]
            found_there = await self._fetched(entry.provider, key, login)
            return {**placed(kind_of(entry.kind), found_there), **own}
        except CredentialMissing as missing:
            raise CredentialMissing(f"credential '{entry.name}': {missing}") from None

    async def _fetched(self, provider: str, key: str, login: Fields | None) -> Fields:
        asked = self._providers.get(provider)
        if asked is None:
            known = ", ".join([*self._providers, "store"])
            raise CredentialMissing(f"no provider '{provider}'; expected one of: {known}")
        if provider not in FAR:
            return parsed(await asked.fetch(key, login))
        name, _, field = key.partition("#")

        async def fetch() -> Fetched:
            return Fetched(await asked.fetch(name, login), FRESH)

        fields = parsed(await self._once.value((provider, name, digest(login)), fetch))
        if not field:
            return fields
        if field not in fields:
            raise CredentialMissing(
                f"{provider}: '{name}' has no field '{field}'; it has: {', '.join(sorted(fields))}"
            )
        return {"value": fields[field]}


class SecretProvider(Protocol):
    """
    - `fetch` returns the text of the secret; JSON where it has several fields;
    - CredentialMissing: there is none, or it may not be read; CredentialUnavailable: not now;
    - `login` are the fields of the credential that opens the provider; None: the environment's;
    - where `login` names an address, nothing of the environment's own is ever sent there.
    """

    async def fetch(self, key: str, login: Fields | None) -> str: ...
