"""Reading from Vault: both versions of its KV store, tokens and AppRoles, and what it refuses."""

from typing import Any

import msgspec
import pytest
from tests.support.vault_server import ROOT_TOKEN
from tests.unit.keychain.conftest import Asker, Vault

from noetl.errors import CredentialMissing, CredentialUnavailable
from noetl.keychain.once import Once
from noetl.keychain.providers.vault import VaultProvider
from noetl.masking import KNOWN, MASK

pytestmark = pytest.mark.rule("KEY-3")


def provider(asking: Asker, vault: Vault, **environment: str) -> VaultProvider:
    named = environment or {"VAULT_TOKEN": ROOT_TOKEN}
    return VaultProvider(asking, Once(), {"VAULT_ADDR": f"{vault.url}/", **named})


@pytest.mark.parametrize(
    ("key", "asked"),
    [
        ("secret/app/db", "/v1/secret/data/app/db"),
        ("/secret/app/db/", "/v1/secret/data/app/db"),
        ("team/kv/x", "/v1/team/kv/data/x"),
        ("old/app", "/v1/old/app"),
        ("secret/with space", "/v1/secret/data/with space"),
    ],
)
async def test_the_mount_tells_the_version(
    key: str, asked: str, asking: Asker, vault: Vault
) -> None:
    vault.secrets[key.strip("/")] = {"user": "app", "password": "from-vault"}
    text = await provider(asking, vault).fetch(key, None)
    assert msgspec.json.decode(text) == {"user": "app", "password": "from-vault"}
    assert vault.seen[-1] == asked


async def test_who_may_not_ask_for_mounts_is_taken_to_have_version_2(
    asking: Asker, vault: Vault
) -> None:
    vault.blind = True
    vault.secrets["secret/app"] = {"value": "x"}
    assert await provider(asking, vault).fetch("secret/app", None) == '{"value":"x"}'
    with pytest.raises(CredentialMissing, match="expected `mount/path`"):
        await provider(asking, vault).fetch("secret", None)


async def test_an_approle_logs_in_once(asking: Asker, vault: Vault) -> None:
    vault.roles["role-1"] = ("secret-id-1", "secret/data/app")
    vault.secrets["secret/app"] = {"value": "x"}
    asked = provider(asking, vault, VAULT_ROLE_ID="role-1", VAULT_SECRET_ID="secret-id-1")
    await asked.fetch("secret/app", None)
    await asked.fetch("secret/app", None)
    assert vault.seen.count("/v1/auth/approle/login") == 1
    assert KNOWN.masked("secret-id-1 hvs.token-number-1") == f"{MASK} {MASK}"


async def test_a_revoked_token_of_an_approle_is_replaced(asking: Asker, vault: Vault) -> None:
    vault.roles["role-1"] = ("secret-id-1", "secret/")
    vault.secrets["secret/app"] = {"value": "x"}
    asked = provider(asking, vault, VAULT_ROLE_ID="role-1", VAULT_SECRET_ID="secret-id-1")
    await asked.fetch("secret/app", None)
    vault.tokens.clear()
    assert await asked.fetch("secret/app", None) == '{"value":"x"}'
    assert vault.seen.count("/v1/auth/approle/login") == 2


async def test_a_credential_opens_it_and_names_its_namespace(asking: Asker, vault: Vault) -> None:
    vault.namespace = "team-a"
    vault.secrets["secret/app"] = {"value": "x"}
    login = {"address": vault.url, "token": ROOT_TOKEN, "namespace": "team-a"}
    assert await VaultProvider(asking, Once(), {}).fetch("secret/app", login) == '{"value":"x"}'


async def test_openbao_has_its_own_variables(asking: Asker, vault: Vault) -> None:
    vault.secrets["secret/app"] = {"value": "x"}
    asked = VaultProvider(asking, Once(), {"BAO_ADDR": vault.url, "BAO_TOKEN": ROOT_TOKEN})
    assert await asked.fetch("secret/app", None) == '{"value":"x"}'


def deny(vault: Vault) -> None:
    vault.tokens[ROOT_TOKEN] = "elsewhere/"


def seal(vault: Vault) -> None:
    vault.status = 503


def delete(vault: Vault) -> None:
    vault.secrets["secret/app"] = None


def keep(vault: Vault) -> None:
    del vault.secrets["secret/app"]


@pytest.mark.parametrize(
    ("spoil", "fault", "says"),
    [
        (deny, CredentialMissing, "refuses 'secret/data/app' .403: permission denied."),
        (seal, CredentialUnavailable, "has trouble .503: Vault is sealed."),
        (delete, CredentialMissing, "has no secret 'secret/app' .KV version 2"),
        (keep, CredentialMissing, "has no secret 'secret/app'"),
    ],
)
async def test_what_it_refuses_is_said(
    spoil: Any, fault: type[Exception], says: str, asking: Asker, vault: Vault
) -> None:
    vault.secrets["secret/app"] = {"value": "x"}
    spoil(vault)
    with pytest.raises(fault, match=says) as refused:
        await provider(asking, vault).fetch("secret/app", None)
    assert ROOT_TOKEN not in str(refused.value)


async def test_a_wrong_approle_is_said(asking: Asker, vault: Vault) -> None:
    asked = provider(asking, vault, VAULT_ROLE_ID="nobody", VAULT_SECRET_ID="guess")
    with pytest.raises(CredentialMissing, match=r"refuses the AppRole .400: invalid role"):
        await asked.fetch("secret/app", None)


@pytest.mark.parametrize("given", [{}, {"VAULT_ADDR": "http://127.0.0.1:9"}, {"VAULT_TOKEN": "t"}])
async def test_without_address_or_token_it_says_what_to_set(
    given: dict[str, str], asking: Asker
) -> None:
    with pytest.raises(CredentialMissing, match="set VAULT_ADDR and VAULT_TOKEN"):
        await VaultProvider(asking, Once(), given).fetch("secret/app", None)


async def test_a_vault_that_is_not_there_may_come_back(asking: Asker) -> None:
    asked = VaultProvider(
        asking, Once(), {"VAULT_ADDR": "http://127.0.0.1:9", "VAULT_TOKEN": "t0ken-x"}
    )
    with pytest.raises(CredentialUnavailable, match="cannot be asked"):
        await asked.fetch("secret/app", None)


@pytest.mark.parametrize(
    "own",
    [{"VAULT_TOKEN": ROOT_TOKEN}, {"VAULT_ROLE_ID": "role-1", "VAULT_SECRET_ID": "secret-id-1"}],
)
async def test_an_address_in_a_login_never_gets_the_worker_s_own_token(
    asking: Asker, vault: Vault, own: dict[str, str]
) -> None:
    asked = VaultProvider(asking, Once(), {"VAULT_ADDR": "https://vault.example", **own})
    with pytest.raises(CredentialMissing, match="needs an address and a token"):
        await asked.fetch("secret/app", {"address": vault.url})
    assert vault.seen == []


async def test_the_worker_s_own_address_may_be_named(asking: Asker, vault: Vault) -> None:
    vault.secrets["secret/app"] = {"value": "x"}
    asked = VaultProvider(asking, Once(), {"VAULT_ADDR": vault.url, "VAULT_TOKEN": ROOT_TOKEN})
    assert await asked.fetch("secret/app", {"address": vault.url}) == '{"value":"x"}'


async def test_a_role_without_its_secret_gets_no_token_of_it(asking: Asker, vault: Vault) -> None:
    vault.roles["role-1"] = ("secret-id-1", "secret/data/app")
    vault.secrets["secret/app"] = {"value": "x"}
    asked = provider(asking, vault, VAULT_ROLE_ID="role-1", VAULT_SECRET_ID="secret-id-1")
    await asked.fetch("secret/app", None)
    with pytest.raises(CredentialMissing, match="refuses the AppRole"):
        await asked.fetch("secret/app", {"role_id": "role-1", "secret_id": "guessed"})


@pytest.mark.parametrize("key", ["secret/../sys/auth", "../x", "secret/./app"])
async def test_no_key_leads_elsewhere_in_the_api(key: str, asking: Asker, vault: Vault) -> None:
    with pytest.raises(CredentialMissing, match="is not the name of a secret"):
        await provider(asking, vault).fetch(key, None)
    assert vault.seen == []
