"""What idempotency keys promise."""

import asyncio

import pytest
from tests.contracts.homes import Homes

from noetl.ports.keys import KeyHolder


@pytest.mark.rule("SRV-1")
async def test_the_first_holds_the_key(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    first = await home.keys.claim("k", "f1", "e1")
    assert first == KeyHolder(execution_id="e1", fingerprint="f1", fresh=True)
    later = await other.keys.claim("k", "f2", "e2")
    assert later == KeyHolder(execution_id="e1", fingerprint="f1", fresh=False)
    assert (await other.keys.claim("another", "f1", "e3")).fresh
    assert [await other.keys.find(key) for key in ("k", "another", "none")] == ["e1", "e3", None]


async def test_saying_it_again_gives_the_same_answer(homes: Homes) -> None:
    home = await homes.open()
    assert await home.keys.claim("k", "f", "e1") == await home.keys.claim("k", "f", "e1")


@pytest.mark.rule("SRV-1")
async def test_of_many_at_once_one_is_first(homes: Homes) -> None:
    opened = [await homes.open() for _ in range(3)]
    claims = [opened[n % 3].keys.claim("k", f"f{n}", f"e{n}") for n in range(12)]
    holders = await asyncio.gather(*claims)
    assert len({holder.execution_id for holder in holders}) == 1
    assert [holder.fresh for holder in holders].count(True) == 1
    winner = next(n for n, holder in enumerate(holders) if holder.fresh)
    assert (holders[0].execution_id, holders[0].fingerprint) == (f"e{winner}", f"f{winner}")


async def test_old_keys_are_forgotten(homes: Homes) -> None:
    home = await homes.open()
    await home.keys.claim("a", "f", "e1")
    await home.keys.claim("b", "f", "e2")
    assert await home.keys.prune(1000) == 0
    assert not (await home.keys.claim("a", "f", "e3")).fresh
    assert await home.keys.prune(9_000_000_000_000) == 2
    assert (await home.keys.claim("a", "f", "e3")).fresh
