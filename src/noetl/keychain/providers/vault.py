"""Secrets in Vault or OpenBao: the HTTP API of KV version 1 and 2, by token or AppRole."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from noetl.errors import CredentialMissing
from noetl.keychain.asking import Asking, ProviderAnswer
from noetl.keychain.fields import Fields, digest, filled, refuse_dots, register_aside
from noetl.keychain.once import Fetched, Once

FROM = {
    "address": ("VAULT_ADDR", "BAO_ADDR"),
    "token": ("VAULT_TOKEN", "BAO_TOKEN"),
    "role_id": ("VAULT_ROLE_ID", "BAO_ROLE_ID"),
    "secret_id": ("VAULT_SECRET_ID", "BAO_SECRET_ID"),
    "namespace": ("VAULT_NAMESPACE", "BAO_NAMESPACE"),
}
"""Field of a credential of kind vault → the variables that stand for it."""
TOKEN_LIFE = 3600.0


class VaultMount(NamedTuple):
    """Where a key lies: the mount's path with its slash, and the version of its KV store."""

    path: str
    version: int


class VaultProvider:
    """Provider; the key is `mount/path`, as the command line of Vault's KV store takes it."""

    def __init__(self, asking: Asking, once: Once, environment: Mapping[str, str]) -> None:
        self._asking = asking
        self._once = once
        self._environment = environment

    async def fetch(self, key: str, login: Fields | None) -> str:
        refuse_dots("Vault", key)
        access = await self._access(login)
        key = key.strip("/")
        mount = await self._mount(access, key)
        rest = key.removeprefix(mount.path)
        path = f"{mount.path}data/{rest}" if mount.version == 2 else key
        answer = await self._ask(access, "GET", path)
        fields = answer.fields.get("data")
        if mount.version == 2 and isinstance(fields, dict):
            fields = fields.get("data")
        if answer.status != 200 or not isinstance(fields, dict):
            raise CredentialMissing(
                f"Vault at {access['address']} has no secret '{key}' (KV version {mount.version}, "
                f"{answer.words()}); the key is `mount/path`, without `data/`"
            )
        return msgspec.json.encode(fields).decode()

    async def _access(self, login: Fields | None) -> Fields:
        access = filled(login, self._environment, FROM, "address")
        if not access["address"] or not (access["token"] or access["role_id"]):
            raise CredentialMissing(
                "Vault needs an address and a token or an AppRole: set VAULT_ADDR and VAULT_TOKEN "
                "(or VAULT_ROLE_ID and VAULT_SECRET_ID), or name a credential of kind vault in "
                "`auth`"
            )
        await register_aside(access)
        return {**access, "address": str(access["address"]).rstrip("/")}

    async def _mount(self, access: Fields, key: str) -> VaultMount:
        """Asked as Vault's own command line asks; who may not ask is taken to have version 2."""
        answer = await self._ask(access, "GET", f"sys/internal/ui/mounts/{key}")
        found = answer.fields.get("data")
        if answer.status == 200 and isinstance(found, dict) and found.get("path"):
            options = found.get("options") or {}
            return VaultMount(str(found["path"]), 2 if str(options.get("version")) == "2" else 1)
        first, _, rest = key.partition("/")
        if not rest:
            raise CredentialMissing(f"Vault: expected `mount/path` as key, got '{key}'")
        return VaultMount(f"{first}/", 2)

    async def _ask(self, access: Fields, method: str, path: str) -> ProviderAnswer:
        answer = await self._with(access, await self._token(access), method, path)
        if answer.status == 403 and not access["token"]:
            # The token of an AppRole may have been revoked: one more try with a new one.
            self._once.drop(_who(access))
            answer = await self._with(access, await self._token(access), method, path)
        if answer.status == 403 and "internal" not in path:
            raise CredentialMissing(
                f"Vault at {access['address']} refuses '{path}' ({answer.words()}); "
                "check the token and its policies"
            )
        return answer

    async def _with(self, access: Fields, token: str, method: str, path: str) -> ProviderAnswer:
        headers = {"X-Vault-Token": token, "X-Vault-Request": "true"}
        if access["namespace"]:
            headers["X-Vault-Namespace"] = str(access["namespace"])
        url = f"{access['address']}/v1/{quote(path, safe='/')}"
        return await self._asking.ask("Vault", method, url, headers=headers)

    async def _token(self, access: Fields) -> str:
        if access["token"]:
            return str(access["token"])
        token: str = await self._once.value(_who(access), lambda: self._log_in(access))
        return token

    async def _log_in(self, access: Fields) -> Fetched:
        headers = {"Content-Type": "application/json"}
        if access["namespace"]:
            headers["X-Vault-Namespace"] = str(access["namespace"])
        body = {"role_id": access["role_id"], "secret_id": access["secret_id"] or ""}
        url = f"{access['address']}/v1/auth/approle/login"
        answer = await self._asking.ask(
            "Vault", "POST", url, headers=headers, body=msgspec.json.encode(body)
        )
        auth: Any = answer.fields.get("auth") or {}
        if answer.status != 200 or not auth.get("client_token"):
            raise CredentialMissing(
                f"Vault at {access['address']} refuses the AppRole ({answer.words()}); "
                "check role_id and secret_id"
            )
        await register_aside({"token": auth["client_token"]})
        return Fetched(auth["client_token"], float(auth.get("lease_duration") or TOKEN_LIFE))


def _who(access: Fields) -> tuple[str, ...]:
    return ("vault", digest(access))
