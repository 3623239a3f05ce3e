"""From a name to the fields of a credential: entries, providers, registered ones, logins."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.vault_server import ROOT_TOKEN
from tests.unit.keychain.conftest import TokenServer, Vault

from noetl.adapters.memory.credentials import MemoryCredentials
from noetl.errors import CredentialMissing
from noetl.keychain.door import KeychainDoor
from noetl.keychain.fields import PUBLIC, REQUIRED
from noetl.keychain.keychain import Keychain
from noetl.keychain.keys import KeySource
from noetl.keychain.store import Store
from noetl.masking import KNOWN, MASK
from noetl.playbook.load import load_valid
from noetl.playbook.plan import Plan, make_plan

HEAD = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: t, path: t}
workflow: [{step: start, tool: [{t: {kind: noop}}]}]
"""


def plan(keychain: str = "") -> Plan:
    text = HEAD + (f"keychain: [{keychain}]" if keychain else "")
    return make_plan(load_valid(text), text)


class Chains:
    """Keychains that are closed with the loop of their test."""

    def __init__(self) -> None:
        self._opened: list[Keychain] = []

    def __call__(self, **environment: str) -> Keychain:
        chain = Keychain(Store(MemoryCredentials(), KeySource(None, {})), environment)
        self._opened.append(chain)
        return chain

    async def close_all(self) -> None:
        for chain in self._opened:
            await chain.close()


@pytest.fixture
def chains() -> Chains:
    return Chains()


async def test_an_entry_comes_before_a_registered_credential(chains: Chains) -> None:
    chain = chains(PG='{"host":"db","password":"of-the-entry"}')
    await chain.store.add("pg", "postgres", {"host": "x", "password": "registered"})
    entry = "{name: pg, kind: postgres_credential, provider: environment, key: PG, port: 5433}"
    fields = await chain.unlock(plan(entry), "pg")
    assert fields == {"kind": "postgres", "host": "db", "password": "of-the-entry", "port": 5433}
    assert (await chain.unlock(plan(), "pg"))["password"] == "registered"


@pytest.mark.parametrize(
    ("entry", "fields"),
    [
        ("{name: a, kind: bearer, provider: environment}", {"kind": "bearer", "token": "token-a"}),
        (
            "{name: a, kind: bearer, provider: environment, key: B}",
            {"kind": "bearer", "token": "token-b"},
        ),
        ("{name: a, kind: basic, user: u, password: p}", {"user": "u", "password": "p"}),
        ("{name: a, kind: generic, provider: store, key: kept}", {"value": "registered"}),
        ("{name: kept, kind: api_key}", {"kind": "api_key", "value": "registered"}),
        ("{name: kept, kind: api_key, header: X}", {"header": "X", "value": "registered"}),
        ("{name: a, kind: bearer, provider: environment, key: N}", {"token": "12345678"}),
        ("{name: a, kind: generic, provider: environment}", {"value": "token-a"}),
        (
            "{name: a, kind: postgres, provider: environment, host: db}",
            {"host": "db", "password": "token-a"},
        ),
        (
            "{name: a, kind: postgres, provider: environment, key: DSN}",
            {"dsn": "postgresql://u:p@db/x"},
        ),
    ],
)
async def test_where_fields_come_from(entry: str, fields: dict[str, Any], chains: Chains) -> None:
    chain = chains(a="token-a", B='{"token": "token-b"}', N="12345678", DSN="postgresql://u:p@db/x")
    await chain.store.add("kept", "generic", {"value": "registered"})
    name = "kept" if "name: kept" in entry else "a"
    assert fields.items() <= (await chain.unlock(plan(entry), name)).items()


async def test_a_file_is_read_without_its_last_newline(chains: Chains, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("in-a-file\n")
    entry = f"{{name: a, kind: bearer, provider: file, key: {path}}}"
    assert (await chains().unlock(plan(entry), "a"))["token"] == "in-a-file"


def binary(folder: Path) -> Path:
    path = folder / "binary"
    path.write_bytes(b"\xff\xfe")
    return path


FILES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "missing": (lambda folder: folder / "none", "there is no file"),
    "a folder": (lambda folder: folder, "cannot be read"),
    "no text": (binary, "is not text in UTF-8"),
}


@pytest.mark.parametrize("case", FILES)
async def test_a_file_that_cannot_be_read_is_said(
    case: str, chains: Chains, tmp_path: Path
) -> None:
    make, says = FILES[case]
    entry = f"{{name: a, kind: bearer, provider: file, key: {make(tmp_path)}}}"
    with pytest.raises(CredentialMissing, match=f"credential 'a': .*{says}"):
        await chains().unlock(plan(entry), "a")


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("", "no credential 'a': add it to the playbook's `keychain`, or register it"),
        ("{name: a, kind: bearer}", "credential 'a': no credential 'a'"),
        ("{name: a, kind: bearer, key: b, header: X}", "credential 'a': no credential 'b'"),
        ("{name: a, kind: bearer, provider: environment}", "no environment variable a; set it"),
        (
            "{name: a, kind: bearer, provider: vault, key: x/y, auth: a}",
            "its `auth` leads in a circle",
        ),
        ("{name: a, kind: bearer, provider: vault, key: x/y, auth: b}", "no credential 'b'"),
    ],
)
async def test_what_is_missing_is_said(entry: str, says: str, chains: Chains) -> None:
    with pytest.raises(CredentialMissing, match=says):
        await chains().unlock(plan(entry), "a")


async def test_a_credential_opens_a_provider_for_another(chains: Chains, vault: Vault) -> None:
    vault.secrets["secret/db"] = {"host": "db", "password": "from-vault"}
    chain = chains()
    await chain.store.add("door", "vault", {"address": vault.url, "token": ROOT_TOKEN})
    entry = "{name: pg, kind: postgres, provider: vault, key: secret/db, auth: door}"
    fields = await chain.unlock(plan(entry), "pg")
    assert fields == {"kind": "postgres", "host": "db", "password": "from-vault"}
    field = "{name: pg, kind: bearer, provider: vault, key: 'secret/db#password', auth: door}"
    assert await chain.unlock(plan(field), "pg") == {"kind": "bearer", "token": "from-vault"}
    assert vault.seen.count("/v1/secret/data/db") == 1  # an answer is used again for a while
    wrong = "{name: pg, kind: bearer, provider: vault, key: 'secret/db#pin', auth: door}"
    with pytest.raises(CredentialMissing, match="has no field 'pin'; it has: host, password"):
        await chain.unlock(plan(wrong), "pg")


async def test_oauth2_becomes_a_bearer(chains: Chains, token_server: TokenServer) -> None:
    chain = chains()
    fields = {"token_url": token_server.url, "client_id": "c", "client_secret": "the-secret"}
    await chain.store.add("api", "oauth2", fields)
    assert await chain.unlock(plan(), "api") == {"kind": "bearer", "token": "issued-token-1"}
    assert KNOWN.masked("the-secret issued-token-1") == f"{MASK} {MASK}"


async def test_secrets_are_masked_and_the_rest_stays_readable(chains: Chains) -> None:
    chain = chains(
        PG='{"host":"db.example","user":"application","password":"hide-me","pin":123456}'
    )
    entry = "{name: pg, kind: postgres, provider: environment, key: PG}"
    await chain.unlock(plan(entry), "pg")
    told = KNOWN.masked("application@db.example hide-me 123456")
    assert told == f"application@db.example {MASK} {MASK}"


@pytest.mark.parametrize(
    ("provider", "name", "value"),
    [
        ("environment", "PLAIN", "plain text"),
        ("environment", "FIELDS", {"user": "u", "password": "in fields"}),
        ("environment", "LIST", "[1, 2]"),
        ("store", "one", "registered"),
        ("store", "many", {"a": "1", "b": "2"}),
    ],
)
async def test_the_value_of_a_secret(provider: str, name: str, value: Any, chains: Chains) -> None:
    chain = chains(PLAIN="plain text", FIELDS='{"user":"u","password":"in fields"}', LIST="[1, 2]")
    await chain.store.add("one", "generic", {"value": "registered"})
    await chain.store.add("many", "generic", {"a": "1", "b": "2"})
    assert await chain.secret(plan(), provider, name, None) == value


async def test_the_secret_of_an_unknown_provider_is_refused(chains: Chains) -> None:
    with pytest.raises(CredentialMissing, match="no provider 'azure'; expected one of: environ"):
        await chains().secret(plan(), "azure", "x", None)


async def test_a_login_for_the_secrets_tool(chains: Chains, vault: Vault) -> None:
    vault.secrets["secret/app"] = {"value": "from-vault"}
    chain = chains()
    await chain.store.add("door", "vault", {"address": vault.url, "token": ROOT_TOKEN})
    assert await chain.secret(plan(), "vault", "secret/app", "door") == "from-vault"


async def test_the_door_builds_nothing_before_it_is_used() -> None:
    door = KeychainDoor(MemoryCredentials, None, b"k" * 32)
    await door.close()
    assert "opened" not in door.__dict__
    with pytest.raises(CredentialMissing):
        await door.unlock(plan(), "a")
    with pytest.raises(CredentialMissing):
        await door.secret(plan(), "store", "a", None)
    assert await door.seals.open(door.seals.seal("x")) == "x"
    await door.close()


def test_no_field_that_a_kind_needs_to_get_in_is_public() -> None:
    ways_in = {"password", "token", "value", "key", "client_secret", "private_key", "dsn"}
    needed = {name for needs in REQUIRED.values() for names in needs for name in names}
    assert ways_in & PUBLIC == set()
    assert ways_in - needed == set()


async def test_what_was_forgotten_is_masked_again_when_it_is_unlocked(chains: Chains) -> None:
    chain = chains(API='{"token":"to-be-forgotten"}')
    given = plan("{name: api, kind: bearer, provider: environment, key: API}")
    for _ in range(3):  # the second time all of it is known
        await chain.unlock(given, "api")
    KNOWN.forget("to-be-forgotten")
    await chain.unlock(given, "api")
    assert KNOWN.masked("it is to-be-forgotten") == f"it is {MASK}"
