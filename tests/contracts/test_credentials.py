"""The contract of Credentials, for every adapter."""

import msgspec
import pytest
from tests.contracts.homes import Homes

from noetl.ports.credentials import SealedCredential


def row(name: str, **more: object) -> SealedCredential:
    made = SealedCredential(name=name, kind="k", key_id="1", sealed=b"\x00\xff", updated_at=1)
    return msgspec.structs.replace(made, **more)


async def test_what_is_kept_is_found(homes: Homes) -> None:
    credentials = (await homes.open()).credentials
    await credentials.keep(row("a"))
    assert await credentials.find("a") == row("a")
    assert await credentials.find("b") is None


async def test_the_last_one_of_a_name_stays(homes: Homes) -> None:
    credentials = (await homes.open()).credentials
    await credentials.keep(row("a"))
    await credentials.keep(row("a", kind="other", key_id="2", sealed=b"new", updated_at=2))
    assert [found.sealed for found in await credentials.all()] == [b"new"]
    assert await credentials.find("a") == row(
        "a", kind="other", key_id="2", sealed=b"new", updated_at=2
    )


async def test_all_are_in_the_order_of_names(homes: Homes) -> None:
    credentials = (await homes.open()).credentials
    assert list(await credentials.all()) == []
    for name in ("b", "a", "c"):
        await credentials.keep(row(name))
    assert [found.name for found in await credentials.all()] == ["a", "b", "c"]


async def test_removing_says_whether_there_was_one(homes: Homes) -> None:
    credentials = (await homes.open()).credentials
    assert not await credentials.remove("a")
    await credentials.keep(row("a"))
    assert await credentials.remove("a")
    assert await credentials.find("a") is None


async def test_a_rewrite_changes_all_or_none(homes: Homes) -> None:
    credentials = (await homes.open()).credentials
    for name in ("a", "b"):
        await credentials.keep(row(name))
    assert await credentials.rewrite(lambda old: msgspec.structs.replace(old, key_id="2")) == 2
    assert {found.key_id for found in await credentials.all()} == {"2"}

    def fails(old: SealedCredential) -> SealedCredential:
        if old.name == "b":
            raise ValueError("broken off")
        return msgspec.structs.replace(old, key_id="3")

    with pytest.raises(ValueError, match="broken off"):
        await credentials.rewrite(fails)
    assert {found.key_id for found in await credentials.all()} == {"2"}


async def test_processes_see_what_the_others_keep(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    assert await home.credentials.find("a") is None
    await other.credentials.keep(row("a"))
    assert await home.credentials.find("a") == row("a")
    await other.credentials.remove("a")
    assert await home.credentials.find("a") is None
