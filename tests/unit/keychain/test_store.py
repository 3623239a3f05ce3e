"""Registered credentials: kept encrypted, listed without values, rotated as one."""

import base64
from collections.abc import Callable
from pathlib import Path

import apsw
import msgspec
import pytest

from noetl.adapters.memory.credentials import MemoryCredentials
from noetl.adapters.sqlite.credentials import SqliteCredentials
from noetl.errors import CredentialMissing, CredentialUnreadable, LogUnavailable
from noetl.keychain.box import Key, new_key
from noetl.keychain.keys import KeySource
from noetl.keychain.store import LOG_KEY, Store
from noetl.ports.credentials import SealedCredential

FIELDS = {"host": "db", "user": "app", "password": "pa55-w0rd", "port": 5432}


def in_home(home: Path) -> Store:
    return Store(SqliteCredentials(home), KeySource(home, {}))


def test_a_credential_comes_back_as_it_was_and_lies_encrypted(tmp_path: Path) -> None:
    in_home(tmp_path).add("pg", "postgres_credential", dict(FIELDS))
    assert in_home(tmp_path).fields("pg") == ("postgres", FIELDS)
    for path in tmp_path.iterdir():
        assert b"pa55-w0rd" not in path.read_bytes(), path


def test_adding_again_replaces(tmp_path: Path) -> None:
    store = in_home(tmp_path)
    store.add("api", "bearer", {"token": "old-token"})
    store.add("api", "api_key", {"key": "new-key"})
    assert store.fields("api") == ("api_key", {"key": "new-key"})
    assert [(row.name, row.kind) for row in store.all()] == [("api", "api_key")]


def test_looking_makes_no_home(tmp_path: Path) -> None:
    store = in_home(tmp_path / "home")
    assert store.fields("pg") is None
    assert store.all() == []
    assert not (tmp_path / "home").exists()


def test_removing_says_whether_there_was_one(tmp_path: Path) -> None:
    store = in_home(tmp_path)
    store.add("api", "generic", {"value": "v"})
    assert store.remove("api")
    assert not store.remove("api")
    assert store.fields("api") is None


@pytest.mark.parametrize(
    ("name", "kind", "fields", "says"),
    [
        ("$x", "generic", {"value": "v"}, "is no name"),
        ("a b", "generic", {"value": "v"}, "is no name"),
        ("x" * 201, "generic", {"value": "v"}, "is no name"),
        ("x", "Not A Kind", {"value": "v"}, "is no kind"),
        ("x", "basic", {"user": "u"}, "lacks password; it has: user"),
        ("x", "oauth2", {}, "lacks token_url, client_id, client_secret; it has: no fields"),
        ("x", "bearer", {"token": ""}, "lacks token or value"),
    ],
)
def test_what_no_tool_could_use_is_refused(
    name: str, kind: str, fields: dict[str, str], says: str
) -> None:
    store = Store(MemoryCredentials(), KeySource(None, {}))
    with pytest.raises(CredentialMissing, match=says.replace("$", r"\$")):
        store.add(name, kind, dict(fields))
    assert store.all() == []


@pytest.mark.parametrize("field", ["name", "kind"])
def test_a_credential_moved_to_another_name_or_kind_does_not_open(field: str) -> None:
    kept = MemoryCredentials()
    store = Store(kept, KeySource(None, {}))
    store.add("own", "generic", {"value": "mine"})
    row = kept.find("own")
    assert row is not None
    kept.keep(msgspec.structs.replace(row, **{field: "stolen"}))
    with pytest.raises(CredentialUnreadable, match="belongs to something else"):
        store.fields("stolen" if field == "name" else "own")


def test_another_key_does_not_open_it_and_the_message_names_both(tmp_path: Path) -> None:
    in_home(tmp_path).add("api", "generic", {"value": "v"})
    other = base64.b64encode(new_key()).decode()
    store = Store(SqliteCredentials(tmp_path), KeySource(tmp_path, {"NOETL_KEY": other}))
    with pytest.raises(CredentialUnreadable, match="credential 'api' was sealed with key"):
        store.fields("api")


def test_rotation_encrypts_everything_anew_and_drops_the_old_key(tmp_path: Path) -> None:
    store = in_home(tmp_path)
    for name in ("a", "b"):
        store.add(name, "generic", {"value": f"value of {name}"})
    log_key = store.log_key()
    before = {row.name: row.sealed for row in SqliteCredentials(tmp_path).all()}
    old = store.all()[0].key_id

    rotated = store.rotate()

    assert rotated.credentials == 2
    assert rotated.key_id != old
    assert {row.key_id for row in SqliteCredentials(tmp_path).all()} == {rotated.key_id}
    assert all(row.sealed != before.get(row.name) for row in SqliteCredentials(tmp_path).all())
    fresh = in_home(tmp_path)
    assert fresh.fields("b") == ("generic", {"value": "value of b"})
    assert fresh.log_key_of(log_key.id).id == log_key.id  # what is in the log can still be read
    assert fresh.log_key().id != log_key.id
    assert len((tmp_path / "key").read_text().split()) == 1


class Broken(Exception):
    """Stands for a power cut."""


@pytest.mark.parametrize("point", ["rewrite", "shrink"])
def test_a_rotation_that_breaks_off_loses_nothing(
    point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = in_home(tmp_path)
    store.add("a", "generic", {"value": "kept"})

    def broken(*_: object) -> None:
        raise Broken

    owner = SqliteCredentials if point == "rewrite" else KeySource
    with monkeypatch.context() as patch:
        patch.setattr(owner, point, broken)
        with pytest.raises(Broken):
            store.rotate()
    assert in_home(tmp_path).fields("a") == ("generic", {"value": "kept"})
    again = in_home(tmp_path)
    again.rotate()
    assert in_home(tmp_path).fields("a") == ("generic", {"value": "kept"})
    assert len((tmp_path / "key").read_text().split()) == 1


def test_a_rotation_is_all_or_nothing(tmp_path: Path) -> None:
    store = in_home(tmp_path)
    for name in ("a", "b"):
        store.add(name, "generic", {"value": name})
    credentials = SqliteCredentials(tmp_path)
    before = list(credentials.all())

    def change(row: SealedCredential) -> SealedCredential:
        if row.name == "b":
            raise Broken
        return msgspec.structs.replace(row, key_id="changed")

    with pytest.raises(Broken):
        credentials.rewrite(change)
    assert list(credentials.all()) == before


def test_keys_of_the_environment_are_rotated_by_putting_the_new_one_first(tmp_path: Path) -> None:
    old, new = (base64.b64encode(new_key()).decode() for _ in range(2))

    def having(text: str) -> Store:
        return Store(SqliteCredentials(tmp_path), KeySource(tmp_path, {"NOETL_KEY": text}))

    having(old).add("a", "generic", {"value": "kept"})
    having(f"{new},{old}").rotate()
    assert having(new).fields("a") == ("generic", {"value": "kept"})
    assert not (tmp_path / "key").exists()


def test_what_is_added_while_a_rotation_runs_is_sealed_with_the_new_key(tmp_path: Path) -> None:
    slow, quick = in_home(tmp_path), in_home(tmp_path)
    slow.add("a", "generic", {"value": "a"})
    kept = SqliteCredentials.keep

    def rotate_first(self: SqliteCredentials, row: SealedCredential) -> None:
        patch.undo()
        quick.rotate()
        kept(self, row)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteCredentials, "keep", rotate_first)
        slow.add("b", "generic", {"value": "b"})
    assert in_home(tmp_path).fields("b") == ("generic", {"value": "b"})


def test_the_keys_of_the_log_are_nobodys_credentials(tmp_path: Path) -> None:
    store = in_home(tmp_path)
    key = store.log_key()
    assert store.log_key().id == in_home(tmp_path).log_key().id == key.id
    assert store.all() == []
    assert store.fields(f"${key.id}") is None
    assert not store.remove(f"${key.id}")
    assert [row.kind for row in SqliteCredentials(tmp_path).all()] == [LOG_KEY]


def test_a_key_of_the_log_that_is_gone_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(CredentialUnreadable, match="not in this home"):
        in_home(tmp_path).log_key_of(Key(new_key()).id)


def broken_file(home: Path) -> None:
    (home / "noetl.db").write_bytes(b"not a database" * 100)


def newer_file(home: Path) -> None:
    connection = apsw.Connection(str(home / "noetl.db"))
    connection.execute("pragma user_version = 99")
    connection.close()


@pytest.mark.parametrize("spoil", [broken_file, newer_file])
def test_a_database_that_cannot_be_used_is_said_so(
    spoil: Callable[[Path], None], tmp_path: Path
) -> None:
    spoil(tmp_path)
    with pytest.raises(LogUnavailable):
        in_home(tmp_path).all()
