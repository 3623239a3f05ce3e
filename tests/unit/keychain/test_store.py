"""Registered credentials: kept encrypted, listed without values, rotated as one."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from noetl.adapters.memory.credentials import MemoryCredentials
from noetl.adapters.sqlite.registers import SqliteCredentials
from noetl.adapters.sqlite.storage import open_storage
from noetl.errors import CredentialMissing, CredentialUnreadable
from noetl.keychain.box import Key, new_key
from noetl.keychain.keys import KeySource
from noetl.keychain.store import LOG_KEY, Store
from noetl.ports.credentials import SealedCredential

FIELDS = {"host": "db", "user": "app", "password": "pa55-w0rd", "port": 5432}


@asynccontextmanager
async def kept_in(home: Path) -> AsyncIterator[SqliteCredentials]:
    opened = await open_storage(home)
    try:
        yield opened.credentials
    finally:
        await opened.close()


@asynccontextmanager
async def in_home(home: Path, key: str | None = None) -> AsyncIterator[Store]:
    async with kept_in(home) as credentials:
        yield Store(credentials, KeySource(home, {} if key is None else {"NOETL_KEY": key}))


async def test_a_credential_comes_back_as_it_was_and_lies_encrypted(tmp_path: Path) -> None:
    async with in_home(tmp_path) as store:
        await store.add("pg", "postgres_credential", dict(FIELDS))
    async with in_home(tmp_path) as store:
        assert await store.fields("pg") == ("postgres", FIELDS)
    for path in tmp_path.iterdir():
        assert b"pa55-w0rd" not in path.read_bytes(), path


async def test_adding_again_replaces(tmp_path: Path) -> None:
    async with in_home(tmp_path) as store:
        await store.add("api", "bearer", {"token": "old-token"})
        await store.add("api", "api_key", {"key": "new-key"})
        assert await store.fields("api") == ("api_key", {"key": "new-key"})
        assert [(row.name, row.kind) for row in await store.all()] == [("api", "api_key")]


async def test_removing_says_whether_there_was_one(tmp_path: Path) -> None:
    async with in_home(tmp_path) as store:
        await store.add("api", "generic", {"value": "v"})
        assert await store.remove("api")
        assert not await store.remove("api")
        assert await store.fields("api") is None


@pytest.mark.parametrize(
    ("name", "kind", "fields", "says"),
    [
        ("$x", "generic", {"value": "v"}, "is not a valid credential name"),
        ("a b", "generic", {"value": "v"}, "is not a valid credential name"),
        ("x" * 201, "generic", {"value": "v"}, "is not a valid credential name"),
        ("x", "Not A Kind", {"value": "v"}, "is not a kind"),
        ("x", "basic", {"user": "u"}, "lacks password; it has: user"),
        ("x", "oauth2", {}, "lacks token_url, client_id, client_secret; it has: no fields"),
        ("x", "bearer", {"token": ""}, "lacks token or value"),
    ],
)
async def test_what_no_tool_could_use_is_refused(
    name: str, kind: str, fields: dict[str, str], says: str
) -> None:
    store = Store(MemoryCredentials(), KeySource(None, {}))
    with pytest.raises(CredentialMissing, match=says.replace("$", r"\$")):
        await store.add(name, kind, dict(fields))
    assert await store.all() == []


@pytest.mark.parametrize("field", ["name", "kind"])
async def test_a_credential_moved_to_another_name_or_kind_does_not_open(field: str) -> None:
    kept = MemoryCredentials()
    store = Store(kept, KeySource(None, {}))
    await store.add("own", "generic", {"value": "mine"})
    row = await kept.find("own")
    assert row is not None
    await kept.keep(msgspec.structs.replace(row, **{field: "stolen"}))
    with pytest.raises(CredentialUnreadable, match="belongs to something else"):
        await store.fields("stolen" if field == "name" else "own")


async def test_another_key_does_not_open_it_and_the_message_names_both(tmp_path: Path) -> None:
    async with in_home(tmp_path) as store:
        await store.add("api", "generic", {"value": "v"})
    other = base64.b64encode(new_key()).decode()
    async with in_home(tmp_path, other) as store:
        with pytest.raises(CredentialUnreadable, match="credential 'api' was sealed with key"):
            await store.fields("api")


async def test_rotation_encrypts_everything_anew_and_drops_the_old_key(tmp_path: Path) -> None:
    async with kept_in(tmp_path) as kept:
        store = Store(kept, KeySource(tmp_path, {}))
        for name in ("a", "b"):
            await store.add(name, "generic", {"value": f"value of {name}"})
        log_key = await store.log_key()
        before = {row.name: row.sealed for row in await kept.all()}
        old = (await store.all())[0].key_id

        rotated = await store.rotate()

        assert rotated.credentials == 2
        assert rotated.key_id != old
        assert {row.key_id for row in await kept.all()} == {rotated.key_id}
        assert all(row.sealed != before.get(row.name) for row in await kept.all())
    async with in_home(tmp_path) as fresh:
        assert await fresh.fields("b") == ("generic", {"value": "value of b"})
        # What is in the log can still be read.
        assert (await fresh.log_key_of(log_key.id)).id == log_key.id
        assert (await fresh.log_key()).id != log_key.id
    assert len((tmp_path / "key").read_text().split()) == 1


class Broken(Exception):
    """Stands for a power cut."""


@pytest.mark.parametrize("point", ["rewrite", "shrink"])
async def test_a_rotation_that_breaks_off_loses_nothing(
    point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise Broken

    owner = SqliteCredentials if point == "rewrite" else KeySource
    async with in_home(tmp_path) as store:
        await store.add("a", "generic", {"value": "kept"})
        with monkeypatch.context() as patch:
            patch.setattr(owner, point, broken)
            with pytest.raises(Broken):
                await store.rotate()
    async with in_home(tmp_path) as again:
        assert await again.fields("a") == ("generic", {"value": "kept"})
        await again.rotate()
    async with in_home(tmp_path) as later:
        assert await later.fields("a") == ("generic", {"value": "kept"})
    assert len((tmp_path / "key").read_text().split()) == 1


async def test_keys_of_the_environment_are_rotated_by_putting_the_new_one_first(
    tmp_path: Path,
) -> None:
    old, new = (base64.b64encode(new_key()).decode() for _ in range(2))
    async with in_home(tmp_path, old) as store:
        await store.add("a", "generic", {"value": "kept"})
    async with in_home(tmp_path, f"{new},{old}") as store:
        await store.rotate()
    async with in_home(tmp_path, new) as store:
        assert await store.fields("a") == ("generic", {"value": "kept"})
    assert not (tmp_path / "key").exists()


async def test_what_is_added_while_a_rotation_runs_is_sealed_with_the_new_key(
    tmp_path: Path,
) -> None:
    kept = SqliteCredentials.keep
    async with in_home(tmp_path) as slow, in_home(tmp_path) as quick:
        await slow.add("a", "generic", {"value": "a"})

        async def rotate_first(self: SqliteCredentials, row: SealedCredential) -> None:
            patch.undo()
            await quick.rotate()
            await kept(self, row)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SqliteCredentials, "keep", rotate_first)
            await slow.add("b", "generic", {"value": "b"})
    async with in_home(tmp_path) as store:
        assert await store.fields("b") == ("generic", {"value": "b"})


async def test_the_keys_of_the_log_are_nobodys_credentials(tmp_path: Path) -> None:
    async with kept_in(tmp_path) as kept, in_home(tmp_path) as other:
        store = Store(kept, KeySource(tmp_path, {}))
        key = await store.log_key()
        assert (await store.log_key()).id == (await other.log_key()).id == key.id
        assert store.known_log_key.id == key.id
        assert await store.all() == []
        assert await store.fields(f"${key.id}") is None
        assert not await store.remove(f"${key.id}")
        assert [row.kind for row in await kept.all()] == [LOG_KEY]


async def test_a_key_of_the_log_that_is_gone_is_said_so(tmp_path: Path) -> None:
    async with in_home(tmp_path) as store:
        with pytest.raises(CredentialUnreadable, match="not in this home"):
            await store.log_key_of(Key(new_key()).id)


async def test_whoever_gets_the_first_log_key_finds_it_kept() -> None:
    """Workers ask at once: one that was told of no key would make one that nobody else has."""
    credentials = SlowCredentials()
    store = Store(credentials, KeySource(None, given=b"k" * 32))

    async def ask() -> list[str]:
        await store.log_key()
        return [row.name for row in await credentials.all()]

    first, second = await asyncio.gather(ask(), ask())
    assert first == second
    assert len(first) == 1


class SlowCredentials(MemoryCredentials):
    """Keeping takes a few turns of the event loop, as it does in a database."""

    async def keep(self, credential: SealedCredential) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        await super().keep(credential)
