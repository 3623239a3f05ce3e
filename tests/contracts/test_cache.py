"""What a home that keeps outcomes promises (CACHE-1)."""

from typing import Any

import pytest
from tests.contracts.homes import Homes, decision, row

from noetl.ports.cache import GRACE, CacheEntry, CacheFilter, CacheIdentity
from noetl.ports.storage import Storage

FAR = 10**14
"""A time (ms) after all others."""


def entry(key: str = "k", **fields: Any) -> CacheEntry:
    usual: dict[str, Any] = {
        "path": "demo/hello",
        "task": "start.get",
        "key": key,
        "fingerprint": "f1",
        "execution_id": "a",
        "kept_at": 100,
        "expires_at": 200,
        "outcome": b'{"status":"ok","result":1}',
    }
    made = usual | fields
    return CacheEntry(**made, size=len(made["outcome"]))


async def keys(home: Storage, **wanted: Any) -> list[str]:
    return [one.key for one in await home.cache.page(CacheFilter(**wanted), now=150)]


async def ended(home: Storage, *names: str) -> None:
    for name in names:
        done = row(name, status="completed", finished_at=50, owner=None)
        await home.log.append(decision(name, 0, row=done))


@pytest.mark.rule("CACHE-1")
async def test_an_entry_is_found_until_its_time_has_come(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    await home.cache.keep(entry(), ())
    identity = CacheIdentity("demo/hello", "start.get", "k", "f1")
    assert await other.cache.find(identity, 199) == entry()
    assert await other.cache.find(identity, 200) is None
    for field in ("path", "task", "key", "fingerprint"):
        strange = CacheIdentity(**{**asdict(identity), field: "x"})
        assert await other.cache.find(strange, 150) is None, field


def asdict(identity: CacheIdentity) -> dict[str, Any]:
    return {name: getattr(identity, name) for name in identity.__struct_fields__}


@pytest.mark.rule("CACHE-1")
async def test_the_latest_outcome_replaces_the_one_before(homes: Homes) -> None:
    home = await homes.open()
    await home.cache.keep(entry(), ())
    later = entry(execution_id="b", kept_at=120, expires_at=300, outcome=b'{"status":"ok"}')
    await home.cache.keep(later, ())
    assert await home.cache.find(later.identity, 250) == later


@pytest.mark.rule("CACHE-1")
async def test_entries_are_listed_and_cleared_by_what_they_are_kept_under(homes: Homes) -> None:
    home = await homes.open()
    for number, (key, fields) in enumerate(
        [("a", {}), ("b", {"task": "start.put"}), ("c", {"path": "demo/other"}), ("d", {})]
    ):
        await home.cache.keep(entry(key, kept_at=number, **fields), ())
    await home.cache.keep(entry("old", expires_at=120), ())
    assert await keys(home) == ["d", "c", "b", "a"]
    assert await keys(home, path="demo/hello") == ["d", "b", "a"]
    assert await keys(home, path="demo/hello", task="start.get", key="a") == ["a"]
    assert [one.outcome for one in await home.cache.page(CacheFilter(), now=150, limit=1)] == [b""]
    assert await home.cache.clear(CacheFilter(task="start.put")) == 1
    assert await home.cache.clear(CacheFilter(path="demo/hello", key="nothing")) == 0
    assert await keys(home) == ["d", "c", "a"]
    assert await home.cache.expire(150) == 1
    assert await home.cache.clear(CacheFilter()) == 3
    assert await keys(home) == []


@pytest.mark.rule("CACHE-1", "KEEP-1")
async def test_retention_leaves_the_bodies_of_entries_alone(homes: Homes) -> None:
    home = await homes.open()
    await ended(home, "a", "b", "plain")
    await home.cache.keep(entry(), {"a", "child"})
    await home.cache.use("b", {"a"})
    assert await home.cache.needed() == {"a", "child"}
    for name in ("a", "b", "plain"):
        assert await home.removals.remove(name) == [name]
    assert sorted(await home.removals.left(FAR)) == ["b", "plain"]
    assert await home.cache.expire(200) == 1
    left = sorted(await home.removals.left(FAR))
    assert left == ["b", "plain"], "whoever makes an entry says first what it needs"
    await home.cache.expire(FAR + GRACE)
    assert await home.cache.needed() == frozenset()
    assert sorted(await home.removals.left(FAR)) == ["a", "b", "plain"]


@pytest.mark.rule("CACHE-1", "KEEP-1")
async def test_an_execution_that_took_an_outcome_keeps_its_bodies(homes: Homes) -> None:
    home = await homes.open()
    await ended(home, "a")
    await home.log.append(decision("b", 0, row=row("b", owner=home.owners.me)))
    await home.cache.keep(entry(), {"a"})
    await home.cache.use("b", {"a"})
    await home.cache.clear(CacheFilter())
    await home.cache.expire(FAR)
    assert await home.cache.needed() == {"a"}
    assert await home.removals.remove("a") == ["a"]
    assert await home.removals.left(FAR) == []


@pytest.mark.rule("CACHE-1")
async def test_bodies_of_an_outcome_that_was_replaced_are_free(homes: Homes) -> None:
    home = await homes.open()
    await home.cache.keep(entry(expires_at=FAR * 2), {"a"})
    await home.cache.keep(entry(execution_id="b", expires_at=FAR * 2), {"b"})
    await home.cache.expire(FAR)
    assert await home.cache.needed() == {"b"}
