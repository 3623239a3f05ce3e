"""A start that brings its claim takes its place with its own commit (LIMIT-3, decision 0091)."""

import asyncio
from typing import Any

import pytest
from tests.contracts.homes import Homes, answer_of, decision, row

from noetl.ports.commit import Commit
from noetl.ports.limits import LimitClaim
from noetl.ports.storage import Storage

pytestmark = pytest.mark.rule("LIMIT-3")


def claim(name: str, **fields: Any) -> LimitClaim:
    usual: dict[str, Any] = {"group": "jobs", "at_once": 2}
    return LimitClaim(execution_id=name, **(usual | fields))


def begin(home: Storage, name: str, *, ends: bool = False, **fields: Any) -> Commit:
    """A first decision that rests on no place yet."""
    mine = row(name, owner=home.owners.me)
    over: dict[str, Any] = {}
    if ends:
        mine, over = row(name, status="completed", finished_at=9), {"releases": ("",)}
    brought = claim(name, **fields)
    return home.log.append(decision(name, 0, row=mine, holds=True, claim=brought, **over))


async def finish(home: Storage, name: str) -> None:
    ended = row(name, owner=None, status="completed", finished_at=9, seq=2)
    await home.log.append(decision(name, 1, row=ended, releases=("",)))


async def test_the_place_is_taken_with_the_commit_and_given_back_with_the_end(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    await begin(home, "a", key="k", priority=3)
    (place,) = await other.limits.places("a")
    assert (place.place, place.group, place.key, place.holder) == (0, "jobs", "k", "")
    assert await other.limits.holding("jobs", "k", 9) == ["a"]
    assert await other.limits.take([claim("b", key="k"), claim("c", key="k")]) == [0, 1]
    assert await home.limits.abandoned() == 0
    await finish(home, "a")
    assert await other.limits.grant() == [("c", "")]


async def test_without_room_nothing_begins_and_nothing_is_left(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    assert await other.limits.take([claim("x"), claim("y")]) == [0, 0]
    refused, free = begin(home, "a"), home.log.append(decision("free", 0))
    assert [await answer_of(one) for one in (refused, free)] == ["PlaceLost", "ok"]
    assert await home.executions.find("a") is None
    assert await home.limits.places("a") == []
    home.log.forget("a")
    assert await home.limits.take([claim("a")]) == [1], "asked as usual it waits"
    await other.limits.release("x")
    assert await home.limits.grant() == [("a", "")]
    assert await answer_of(begin(home, "a")) == "ok", "who holds a place needs no room"


async def test_nobody_begins_before_those_who_wait(homes: Homes) -> None:
    """LIMIT-4: there is room for the key, and another key of the limit waits for its own."""
    home = await homes.open()
    assert await home.limits.take([claim("x", at_once=1), claim("y", at_once=1)]) == [0, 1]
    assert await answer_of(begin(home, "a", key="other")) == "PlaceLost"
    await home.limits.release("x")
    home.log.forget("a")
    assert await answer_of(begin(home, "a", key="other")) == "PlaceLost", "y has not begun"
    assert await home.limits.grant() == [("y", "")]
    home.log.forget("a")
    assert await answer_of(begin(home, "a", key="other")) == "ok"


@pytest.mark.parametrize(
    ("fields", "most"), [({"at_once": 3}, 3), ({"at_once": None, "total": 2}, 2)]
)
async def test_of_many_in_one_commit_no_more_begin_than_may(
    homes: Homes, fields: dict[str, Any], most: int
) -> None:
    home = await homes.open()
    begun = [begin(home, f"a{number}", **fields) for number in range(6)]
    answers = [await answer_of(one) for one in begun]
    assert set(answers) <= {"ok", "PlaceLost"}
    assert len(await home.limits.holding("jobs", "", 9)) == answers.count("ok") <= most


async def test_the_keys_of_a_limit_are_counted_apart(homes: Homes) -> None:
    home = await homes.open()
    begun = [begin(home, f"a{number}", key=f"k{number}", at_once=1) for number in range(4)]
    assert [await answer_of(one) for one in begun] == ["ok"] * 4
    again = [begin(home, f"b{number}", key=f"k{number}", at_once=1) for number in range(4)]
    assert [await answer_of(one) for one in again] == ["PlaceLost"] * 4


async def test_what_is_over_with_its_first_commit_needs_room_and_leaves_no_claim(
    homes: Homes,
) -> None:
    home = await homes.open()
    await begin(home, "a", ends=True)
    first = begin(home, "b")
    second = home.log.append(
        decision("b", 1, row=row("b", status="completed", finished_at=9), releases=("",))
    )
    assert [await answer_of(one) for one in (first, second)] == ["ok", "ok"]
    assert [await home.limits.places(name) for name in "ab"] == [[], []]
    assert await home.limits.take([claim("x"), claim("y")]) == [0, 0]
    assert await answer_of(begin(home, "c", ends=True)) == "PlaceLost"


async def test_one_limit_that_is_reached_holds_up_no_start_under_another(homes: Homes) -> None:
    home = await homes.open()
    assert await home.limits.take([claim("x", at_once=1), claim("y", at_once=1)]) == [0, 1]
    begun = [begin(home, name, group=group) for name, group in (("a", "jobs"), ("b", "g" * 900))]
    assert [await answer_of(one) for one in begun] == ["PlaceLost", "ok"]
    (place,) = await home.limits.places("b")
    assert (await home.limits.take([claim("c", group="g" * 900)]))[0] == 0
    assert (await home.limits.take([claim("d", group="g" * 900)]))[0] == 1, place


async def test_starts_of_two_homes_never_exceed_the_limit(homes: Homes) -> None:
    """Each tries until it has begun, by its own claim or by asking; 4 at once, never 5."""
    most: dict[str, Any] = {"at_once": 4}
    first, second = await homes.open(), await homes.open()
    seen: list[int] = []

    async def start(home: Storage, name: str) -> None:
        if await answer_of(begin(home, name, **most)) != "ok":
            home.log.forget(name)
            await home.limits.take([claim(name, **most)])
            while await answer_of(begin(home, name, **most)) != "ok":
                home.log.forget(name)
                await home.limits.grant()
        seen.append(len(await home.limits.holding("jobs", "", 99)))
        await finish(home, name)

    named = [
        (home, f"{mark}{n}") for n in range(40) for home, mark in ((first, "a"), (second, "b"))
    ]
    await asyncio.gather(*(start(home, name) for home, name in named))
    assert len(seen) == 80
    assert max(seen) <= 4
    assert await first.limits.holding("jobs", "", 9) == []
