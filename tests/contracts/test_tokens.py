"""What the register of API tokens promises."""

from typing import Any

import msgspec
import pytest
from tests.contracts.homes import Homes

from noetl.ports.tokens import TokenRow


def token(token_id: str, **fields: Any) -> TokenRow:
    usual: dict[str, Any] = {
        "name": "ci",
        "role": "operator",
        "digest": f"sha of {token_id}",
        "created_at": 5,
    }
    return TokenRow(token_id=token_id, **(usual | fields))


async def test_a_token_is_found_by_its_digest(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    assert await home.tokens.find("sha of a") is None
    await home.tokens.add(token("a", expires_at=9))
    assert await other.tokens.find("sha of a") == token("a", expires_at=9)
    assert await other.tokens.find("a") is None
    assert await other.tokens.find("\0\ud800") is None


async def test_all_are_in_the_order_of_their_making(homes: Homes) -> None:
    home = await homes.open()
    assert list(await home.tokens.all()) == []
    for token_id, created_at in (("a", 3), ("c", 1), ("b", 1)):
        await home.tokens.add(token(token_id, created_at=created_at))
    assert [row.token_id for row in await home.tokens.all()] == ["b", "c", "a"]


async def test_adding_it_again_changes_nothing(homes: Homes) -> None:
    home = await homes.open()
    await home.tokens.add(token("a"))
    await home.tokens.revoke("a")
    await home.tokens.add(token("a"))
    assert [row.revoked_at is None for row in await home.tokens.all()] == [False]


@pytest.mark.parametrize(
    "other",
    [token("b", digest="sha of a"), token("a", digest="another"), token("a", role="admin")],
)
async def test_ids_and_digests_are_unique(homes: Homes, other: TokenRow) -> None:
    home = await homes.open()
    await home.tokens.add(token("a"))
    with pytest.raises(ValueError, match=r"cannot be added: its id or digest is taken"):
        await home.tokens.add(other)
    assert list(await home.tokens.all()) == [token("a")]


async def test_a_revoked_token_is_still_known(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    for token_id in ("a", "b"):
        await home.tokens.add(token(token_id))
    assert await other.tokens.revoke("a")
    revoked = await home.tokens.find("sha of a")
    assert revoked is not None
    assert (revoked.revoked_at or 0) > 1_700_000_000_000
    assert msgspec.structs.replace(revoked, revoked_at=None) == token("a")
    assert await home.tokens.revoke("a"), "there is such a token"
    assert await home.tokens.find("sha of a") == revoked, "the first time counts"
    assert await home.tokens.find("sha of b") == token("b")
    assert not await home.tokens.revoke("nothing")


async def test_sessions_that_have_ended_are_forgotten(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    for token_id, until in (("a", 5), ("b", None), ("a.1", 5), ("a.2", 6), ("b.1", 9), ("b.2", 9)):
        await home.tokens.add(token(token_id, expires_at=until))
    for token_id in ("b", "b.1"):
        await home.tokens.revoke(token_id)
    assert await other.tokens.forget_sessions(5) == 2
    assert [row.token_id for row in await home.tokens.all()] == ["a", "a.2", "b", "b.2"]
    assert await home.tokens.find("sha of a.1") is None
    assert await other.tokens.forget_sessions(5) == 0
