"""The contract of Credentials, for every adapter."""

from collections.abc import Callable, Iterator
from contextlib import closing

import msgspec
import pytest
from tests.contracts.homes import Homes

from noetl.adapters.memory.credentials import MemoryCredentials
from noetl.adapters.postgres.credentials import PostgresCredentials
from noetl.adapters.sqlite.credentials import SqliteCredentials
from noetl.ports.credentials import Credentials, SealedCredential

AnyCredentials = MemoryCredentials | SqliteCredentials | PostgresCredentials

ADAPTERS: dict[str, Callable[[pytest.FixtureRequest], AnyCredentials]] = {
    "memory": lambda _: MemoryCredentials(),
    "sqlite": lambda request: SqliteCredentials(request.getfixturevalue("tmp_path")),
    "postgres": lambda request: PostgresCredentials(request.getfixturevalue("log_database").url),
}


@pytest.fixture(params=ADAPTERS)
def credentials(request: pytest.FixtureRequest) -> Iterator[AnyCredentials]:
    with closing(ADAPTERS[request.param](request)) as opened:
        yield opened


def row(name: str, **more: object) -> SealedCredential:
    made = SealedCredential(name=name, kind="k", key_id="1", sealed=b"\x00\xff", updated_at=1)
    return msgspec.structs.replace(made, **more)


def test_what_is_kept_is_found(credentials: Credentials) -> None:
    credentials.keep(row("a"))
    assert credentials.find("a") == row("a")
    assert credentials.find("b") is None


def test_the_last_one_of_a_name_stays(credentials: Credentials) -> None:
    credentials.keep(row("a"))
    credentials.keep(row("a", kind="other", key_id="2", sealed=b"new", updated_at=2))
    assert [found.sealed for found in credentials.all()] == [b"new"]
    assert credentials.find("a") == row("a", kind="other", key_id="2", sealed=b"new", updated_at=2)


def test_all_are_in_the_order_of_names(credentials: Credentials) -> None:
    assert list(credentials.all()) == []
    for name in ("b", "a", "c"):
        credentials.keep(row(name))
    assert [found.name for found in credentials.all()] == ["a", "b", "c"]


def test_removing_says_whether_there_was_one(credentials: Credentials) -> None:
    assert not credentials.remove("a")
    credentials.keep(row("a"))
    assert credentials.remove("a")
    assert credentials.find("a") is None


def test_a_rewrite_changes_all_or_none(credentials: Credentials) -> None:
    for name in ("a", "b"):
        credentials.keep(row(name))
    assert credentials.rewrite(lambda old: msgspec.structs.replace(old, key_id="2")) == 2
    assert {found.key_id for found in credentials.all()} == {"2"}

    def fails(old: SealedCredential) -> SealedCredential:
        if old.name == "b":
            raise ValueError("broken off")
        return msgspec.structs.replace(old, key_id="3")

    with pytest.raises(ValueError, match="broken off"):
        credentials.rewrite(fails)
    assert {found.key_id for found in credentials.all()} == {"2"}


async def test_processes_see_what_the_others_keep(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    assert home.credentials.find("a") is None
    other.credentials.keep(row("a"))
    assert home.credentials.find("a") == row("a")
    other.credentials.remove("a")
    assert home.credentials.find("a") is None
