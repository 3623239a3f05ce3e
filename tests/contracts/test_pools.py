"""What a home that knows pools promises (LIMIT-1)."""

import pytest
from tests.contracts.homes import Homes

from noetl.ports.limits import LimitClaim
from noetl.ports.pools import PoolRow, group_of


def claim(name: str, total: int) -> LimitClaim:
    return LimitClaim(execution_id=name, holder="part 1.0/0", group=group_of("gpu"), total=total)


@pytest.mark.rule("LIMIT-1")
async def test_a_pool_is_set_and_removed(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    await home.pools.put(PoolRow(name="gpu", at_once=2, set_at=5))
    await home.pools.put(PoolRow(name="cpu", at_once=9, set_at=6))
    await home.pools.put(PoolRow(name="gpu", at_once=3, set_at=7))
    assert [(row.name, row.at_once, row.set_at) for row in await other.pools.all()] == [
        ("cpu", 9, 6),
        ("gpu", 3, 7),
    ]
    assert await other.pools.remove("gpu")
    assert not await other.pools.remove("gpu")
    assert [row.name for row in await home.pools.all()] == ["cpu"]


@pytest.mark.rule("LIMIT-1")
async def test_what_waits_is_bound_by_the_new_number(homes: Homes) -> None:
    home = await homes.open()
    places = await home.limits.take([claim("a", 1), claim("b", 1), claim("c", 1)])
    assert places == [0, 1, 2]
    await home.pools.put(PoolRow(name="cpu", at_once=9, set_at=1))
    assert await home.limits.grant() == []
    await home.pools.put(PoolRow(name="gpu", at_once=2, set_at=1))
    assert await home.limits.grant() == [("b", "part 1.0/0")]
