"""What limits over all executions promise (LIMIT-1 to LIMIT-4)."""

import asyncio
import random
import string
from typing import Any

import pytest
from tests.contracts.homes import Homes, answer_of, decision, row

from noetl.ports.limits import LimitClaim
from noetl.ports.storage import Storage


def claim(name: str, **fields: Any) -> LimitClaim:
    usual: dict[str, Any] = {"group": "jobs", "at_once": 2}
    return LimitClaim(execution_id=name, **(usual | fields))


async def begin(home: Storage, name: str) -> None:
    await home.log.append(decision(name, 0, row=row(name, owner=home.owners.me)))


async def finish(home: Storage, name: str, *holders: str) -> None:
    ended = row(name, owner=None, status="completed", finished_at=9, seq=2)
    await home.log.append(decision(name, 1, row=ended, releases=holders or ("",)))


@pytest.mark.rule("LIMIT-2")
async def test_what_is_over_the_limit_has_a_place(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    assert await home.limits.take([claim("a"), claim("b")]) == [0, 0]
    assert await home.limits.grant() is None, "nothing waits"
    assert await home.limits.take([claim("c")]) == [1]
    assert await other.limits.take([claim("d")]) == [2]
    assert await other.limits.take([claim("c"), claim("a")]) == [1, 0], "asking twice is once"
    assert await home.limits.grant() == []
    assert await home.limits.holding("jobs", "", 9) == ["a", "b"]
    assert await home.limits.holding("jobs", "", 1) == ["a"]
    assert await home.limits.holding("jobs", "other", 9) == []


@pytest.mark.rule("LIMIT-3")
async def test_a_place_is_free_with_the_commit_that_ends_it(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    await home.limits.take([claim("a"), claim("b"), claim("c")])
    await begin(home, "a")
    await finish(home, "a")
    assert await other.limits.grant() == [("c", "")]
    assert ("c", "") in await home.limits.granted()
    assert await home.limits.take([claim("c")]) == [0]
    assert [(one.place, one.key) for one in await home.limits.places("c")] == [(0, "")]
    assert await home.limits.places("a") == []


@pytest.mark.rule("LIMIT-3")
async def test_a_decision_that_is_refused_releases_nothing(homes: Homes) -> None:
    home = await homes.open()
    await home.limits.take([claim("a", at_once=1), claim("b", at_once=1)])
    await begin(home, "a")
    late = home.log.append(decision("a", 7, releases=("",)))
    assert await answer_of(late) == "VersionConflict"
    assert await home.limits.grant() == []


@pytest.mark.rule("LIMIT-3")
async def test_step_runs_are_released_one_by_one(homes: Homes) -> None:
    home = await homes.open()
    runs = [claim("a", holder=holder, group="jobs/load") for holder in ("3.0", "5.0", "7.0")]
    assert await home.limits.take(runs) == [0, 0, 1]
    await begin(home, "a")
    await home.log.append(decision("a", 1, releases=("5.0",)))
    assert await home.limits.grant() == [("a", "7.0")]
    await home.limits.release("a", "3.0")
    assert [one.holder for one in await home.limits.places("a")] == ["7.0"]


@pytest.mark.rule("LIMIT-1")
async def test_each_key_counts_for_itself_and_the_total_over_all(homes: Homes) -> None:
    home = await homes.open()
    asked = [claim(f"{key}{n}", key=key, at_once=2, total=3) for key in "xyz" for n in range(3)]
    places = await home.limits.take(asked)
    held = [one.execution_id for one, place in zip(asked, places, strict=True) if place == 0]
    assert sorted(held) == ["x0", "y0", "z0"], "the keys take turns"
    await home.limits.release("y0")
    await home.limits.release("z0")
    assert sorted(await home.limits.grant() or ()) == [("x1", ""), ("y1", "")]
    await home.limits.release("y1")
    assert await home.limits.grant() == [("z1", "")], "x has its two"


@pytest.mark.rule("LIMIT-2")
async def test_who_holds_a_place_is_named_under_a_key_and_under_all(homes: Homes) -> None:
    home = await homes.open()
    both: dict[str, Any] = {"at_once": 2, "total": 3}
    for name, key in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "z"), ("e", "x")):
        await home.limits.take([claim(name, key=key, **both)])
    await home.limits.take([claim("b", holder="run", group="elsewhere")])
    assert await home.limits.holding("jobs", "x", 9) == ["a", "b"]
    assert await home.limits.holding("jobs", "z", 9) == [], "it waits: others have all places"
    assert await home.limits.holding("jobs", None, 9) == ["a", "b", "c"]
    assert await home.limits.holding("jobs", None, 2) == ["a", "b"]
    assert await home.limits.holding("elsewhere", None, 9) == ["b"]


@pytest.mark.rule("LIMIT-4")
async def test_priority_then_keys_in_turn_then_age(homes: Homes) -> None:
    home = await homes.open()
    first = claim("first", at_once=1, total=1, key="x")
    assert await home.limits.take([first]) == [0]
    waiting = [
        *(claim(f"x{n}", key="x", at_once=1, total=1) for n in range(3)),
        *(claim(f"y{n}", key="y", at_once=1, total=1) for n in range(3)),
        claim("urgent", key="x", at_once=1, total=1, priority=5),
    ]
    for one in waiting:
        await home.limits.take([one])
    order = []
    now = "first"
    for _ in waiting:
        await home.limits.release(now)
        ((now, _holder),) = await home.limits.grant() or [("", "")]
        order.append(now)
    assert order == ["urgent", "x0", "y0", "x1", "y1", "x2", "y2"]


@pytest.mark.rule("LIMIT-4")
async def test_a_key_that_comes_late_does_not_wait_behind_a_long_queue(homes: Homes) -> None:
    home = await homes.open()
    both: dict[str, Any] = {"at_once": 1, "total": 1}
    await home.limits.take([claim("first", key="x", **both)])
    await home.limits.take([claim(f"x{n:02}", key="x", **both) for n in range(20)])
    await home.limits.take([claim("late", key="y", **both)])
    order = []
    now = "first"
    for _ in range(3):
        await home.limits.release(now)
        ((now, _holder),) = await home.limits.grant() or [("", "")]
        order.append(now)
    assert "late" in order[:2]


@pytest.mark.rule("LIMIT-1")
async def test_so_many_begin_in_a_time(homes: Homes) -> None:
    home = await homes.open()
    often = {"at_once": None, "count": 2, "seconds": 3600.0}
    assert await home.limits.take([claim(name, **often) for name in "abc"]) == [0, 0, 1]
    await home.limits.release("a")
    assert await home.limits.grant() == [], "it counts when something began, not what runs"
    at_once = {"at_once": None, "count": 1, "seconds": 0.0}
    assert await home.limits.take([claim(name, group="g", **at_once) for name in "de"]) == [0, 0]


@pytest.mark.rule("LIMIT-3")
async def test_many_at_once_never_get_one_too_many(homes: Homes) -> None:
    views = [await homes.open() for _ in range(3)]
    names = [f"{number:03}" for number in range(60)]
    asks = [
        views[number % 3].limits.take([claim(name, at_once=4)]) for number, name in enumerate(names)
    ]
    places = [place for (place,) in await asyncio.gather(*asks)]
    assert places.count(0) == 4
    running = {name for name, place in zip(names, places, strict=True) if place == 0}
    ended: set[str] = set()
    while running:
        await asyncio.gather(
            *(views[n % 3].limits.release(name) for n, name in enumerate(sorted(running)))
        )
        ended |= running
        grants = await asyncio.gather(*(view.limits.grant() for view in views))
        running = {name for some in grants for name, _ in some or ()}
        assert len(running) <= 4
    assert ended == set(names), "none is forgotten"


@pytest.mark.rule("LIMIT-3")
async def test_what_is_claimed_for_an_execution_that_has_ended_is_given_back(homes: Homes) -> None:
    home = await homes.open()
    await begin(home, "a")
    await finish(home, "a")
    assert await home.limits.take([claim("a", at_once=1), claim("b", at_once=1)]) == [0, 1]
    assert await home.limits.abandoned() == 1
    assert await home.limits.grant() == [("b", "")]


@pytest.mark.rule("LIMIT-3")
async def test_what_a_dead_process_never_began_is_given_back(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    await begin(other, "begun")
    one = {"at_once": 1, "group": "g"}
    assert await other.limits.take([claim("begun"), claim("unbegun", **one)]) == [0, 0]
    assert await home.limits.take([claim("next", **one)]) == [1]
    await home.limits.abandoned()
    assert await home.limits.grant() == [], "it may still begin"
    await homes.kill(other)
    await begin(home, "next")
    assert await home.limits.abandoned() == 1
    assert await home.limits.grant() == [("next", "")]
    assert await home.limits.take([claim("begun")]) == [0]


@pytest.mark.rule("LIMIT-3")
async def test_what_is_withdrawn_waits_no_more_and_holds_what_it_has(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    assert await home.limits.take([claim("a"), claim("b"), claim("c")]) == [0, 0, 1]
    for name in "abc":
        await other.limits.withdraw(name)
    assert [one.place for one in await home.limits.places("a")] == [0]
    assert await home.limits.places("c") == []
    assert await home.limits.take([claim("d")]) == [1]


async def queued(home: Storage, *names: str) -> None:
    """Executions that wait, behind one that has the only place."""
    wanted = [claim(name, at_once=1) for name in ("first", *names)]
    assert await home.limits.take(wanted) == list(range(len(wanted)))
    for name in names:
        waits = row(name, owner=home.owners.me, status="queued")
        await home.log.append(decision(name, 0, row=waits))


@pytest.mark.rule("LIMIT-2", "LIMIT-3")
async def test_what_is_parked_is_nobodys_until_it_has_its_place(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    await queued(home, "a", "b")
    assert await other.limits.park(["a"]) == [], "only the owner can"
    assert await home.limits.park(["a", "b", "first", "none"]) == ["a", "b"]
    assert await home.limits.park(["a"]) == []
    assert await home.owners.owned() == []
    assert (await other.owners.adopt(9)).execution_ids == []
    assert [one.place for one in await other.limits.places("b")] == [2], "its place is shown"
    await other.limits.release("first")
    assert await other.limits.grant() == [("a", "")]
    assert (await home.owners.adopt(9)).execution_ids == ["a"]
    found = await home.executions.find("a")
    assert found is not None
    assert (found.owner, found.queued_at, found.status) == (home.owners.me, None, "queued")


@pytest.mark.rule("LIMIT-2")
async def test_a_note_for_what_is_parked_finds_an_owner(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    await queued(home, "a", "b")
    await other.inbox.leave("a", "cancel", {})
    assert await home.limits.park(["a", "b"]) == ["b"], "somebody has to obey the note"
    await other.inbox.leave("b", "cancel", {})
    assert (await other.owners.adopt(9)).execution_ids == ["b"]
    assert [note.execution_id for note in await other.inbox.waiting()] == ["b"]


@pytest.mark.rule("LIMIT-3")
async def test_what_is_parked_can_be_claimed_and_a_claim_that_is_gone_frees_it(
    homes: Homes,
) -> None:
    home, other = await homes.open(), await homes.open()
    await queued(home, "a", "b")
    await home.limits.park(["a", "b"])
    await other.limits.withdraw("a")
    assert (await other.owners.adopt(9)).execution_ids == ["a"]
    assert not await other.owners.claim("b")
    assert sorted(await other.owners.owned()) == ["a", "b"]


@pytest.mark.rule("LIMIT-3")
async def test_what_has_its_place_is_not_parked(homes: Homes) -> None:
    home = await homes.open()
    await queued(home, "a")
    await home.limits.release("first")
    await home.limits.grant()
    assert await home.limits.park(["a"]) == []
    assert await home.owners.owned() == ["a"]


@pytest.mark.rule("LIMIT-2")
async def test_a_place_is_counted_up_to_a_thousand_where_somebody_waits_for_it(
    homes: Homes,
) -> None:
    home = await homes.open()
    crowd = [claim(f"c{number:04}", at_once=1) for number in range(1_010)]
    places = await home.limits.take(crowd)
    assert (places[0], places[1], places[1000]) == (0, 1, 1000)
    assert set(places[1001:]) == {1001}
    assert [one.place for one in await home.limits.places("c1009")] == [1009]
    assert await home.limits.take([claim("urgent", at_once=1, priority=5)]) == [1]
    assert await home.limits.take([claim("other", at_once=1, key="b"), crowd[9]]) == [0, 10]


@pytest.mark.rule("LIMIT-3")
async def test_nothing_begins_under_a_place_that_was_given_to_another(homes: Homes) -> None:
    """A process that is taken for dead between its claim and its commit, and goes on."""
    home, other = await homes.open(), await homes.open()
    one: dict[str, Any] = {"at_once": 1}
    mine = row("late", owner=home.owners.me)
    assert await home.limits.take([claim("late", **one)]) == [0]
    assert await other.limits.take([claim("next", **one)]) == [1]
    await other.limits.release("late")
    assert await other.limits.grant() == [("next", "")]
    late = home.log.append(decision("late", 0, row=mine, holds=True))
    beside = home.log.append(decision("free", 0, row=row("free", owner=home.owners.me)))
    follower = home.log.append(decision("late", 1))
    assert [await answer_of(one) for one in (late, beside)] == ["PlaceLost", "ok"]
    assert await answer_of(follower) == "VersionConflict"
    assert await home.executions.find("late") is None
    home.log.forget("late")
    assert await home.limits.take([claim("late", **one)]) == [1], "asked again it waits"
    waiting = home.log.append(decision("late", 0, row=mine, holds=True))
    assert await answer_of(waiting) == "PlaceLost", "to wait is not to hold"
    home.log.forget("late")
    await home.limits.release("next")
    assert await home.limits.grant() == [("late", "")]
    assert await answer_of(home.log.append(decision("late", 0, row=mine, holds=True))) == "ok"


@pytest.mark.rule("LIMIT-3")
async def test_a_start_that_ends_with_its_first_row_gives_its_place_back(homes: Homes) -> None:
    home = await homes.open()
    assert await home.limits.take([claim("a", at_once=1), claim("b", at_once=1)]) == [0, 1]
    ended = row("a", status="completed", finished_at=9)
    await home.log.append(decision("a", 0, row=ended, holds=True, releases=("",)))
    assert await home.limits.places("a") == []
    assert await home.limits.grant() == [("b", "")]


@pytest.mark.rule("LIMIT-3")
async def test_a_start_that_failed_and_never_came_again_holds_nothing(
    homes: Homes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process lives, and so would its claim."""
    home = await homes.open()
    begun, failed, after = (claim(name, at_once=2) for name in ("begun", "failed", "after"))
    assert await home.limits.take([begun, failed, after]) == [0, 0, 1]
    await begin(home, "begun")
    assert await home.limits.abandoned() == 0
    for module in ("memory", "sqlite", "postgres"):
        monkeypatch.setattr(f"noetl.adapters.{module}.limits.UNBEGUN", -1000)
    assert await home.limits.abandoned() == 2, "the one that waits, too: it would ask again"
    assert [one.place for one in await home.limits.places("begun")] == [0]


@pytest.mark.rule("LIMIT-3")
async def test_a_key_that_no_database_can_keep_harms_no_other(homes: Homes) -> None:
    """Keys come from payloads and results: of one with NUL the claims asked beside it failed."""
    home = await homes.open()
    odd = claim("a", key="x\0y", at_once=1)
    assert await home.limits.take([claim("b", key="z"), odd, claim("c", key="z")]) == [0, 0, 0]
    assert await home.limits.take([claim("d", key="x\0y", at_once=1)]) == [1]
    assert await home.limits.holders("jobs", "x\0y") == ["a", "d"]
    assert await home.limits.holding("jobs", "x\0y", 9) == ["a"]


@pytest.mark.rule("LIMIT-3")
async def test_nor_do_the_longest_of_names(homes: Homes) -> None:
    """The path of a playbook, and the name of a step, may have thousands of characters."""
    home = await homes.open()
    drawn = random.Random(1)
    group = "".join(drawn.choices(string.ascii_letters, k=5000))
    key = "".join(chr(drawn.randint(0x10000, 0x1FFFF)) for _ in range(500))
    long = claim("a", group=group, key=key, at_once=1)
    assert await home.limits.take([claim("b"), long, claim("c")]) == [0, 0, 0]
    assert await home.limits.take([claim("d", group=group, key=key, at_once=1)]) == [1]
    assert await home.limits.take([claim("e", group=f"{group}x", key=key, at_once=1)]) == [0]
    assert await home.limits.holders(group, key) == ["a", "d"]
    assert await home.limits.holding(group, None, 9) == ["a"]
    await begin(home, "a")
    await finish(home, "a")
    assert await home.limits.grant() == [("d", "")]
