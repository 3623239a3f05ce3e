"""What processes that share a home promise each other."""

import asyncio

import pytest
from tests.contracts.homes import Homes, answer_of, decision, row

from noetl.errors import ExecutionNotFound, HomeInUse


async def owner_of(home: object, execution_id: str) -> str | None:
    found = await home.executions.find(execution_id)  # type: ignore[attr-defined]
    return None if found is None else found.owner


async def test_a_free_execution_is_claimed_and_released(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    assert mine.owners.me != other.owners.me
    await mine.log.append(decision("a", 0, 1))
    await mine.owners.claim("a")
    await mine.owners.claim("a")
    assert await owner_of(other, "a") == mine.owners.me
    await other.owners.release("a")
    assert await owner_of(other, "a") == mine.owners.me, "only the owner can give it up"
    await mine.owners.release("a")
    assert await owner_of(other, "a") is None
    await other.owners.claim("a")
    assert await owner_of(mine, "a") == other.owners.me


async def test_a_live_owner_is_named(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    await mine.log.append(decision("a", 0, 1, row=row("a", owner=mine.owners.me)))
    with pytest.raises(HomeInUse, match=r"execution a is run by process \d+; .* `noetl cancel a`"):
        await other.owners.claim("a")
    assert await owner_of(mine, "a") == mine.owners.me


async def test_a_dead_owner_is_followed(homes: Homes) -> None:
    dead, mine, other = [await homes.open() for _ in range(3)]
    await dead.log.append(decision("a", 0, 1, row=row("a", owner=dead.owners.me)))
    await homes.kill(dead)
    answers = [await answer_of(mine.owners.claim("a")), await answer_of(other.owners.claim("a"))]
    assert answers == ["ok", "HomeInUse"]
    assert await owner_of(other, "a") == mine.owners.me


async def test_the_holder_is_a_live_process(homes: Homes) -> None:
    dead, mine, other = [await homes.open() for _ in range(3)]
    for name, owner in (("a", mine.owners.me), ("b", dead.owners.me), ("c", None)):
        await (dead if name == "b" else mine).log.append(
            decision(name, 0, 1, row=row(name, owner=owner))
        )
    await homes.kill(dead)
    held = {name: await other.owners.holder(name) for name in ("a", "b", "c", "nothing")}
    assert {name for name, holder in held.items() if holder} == {"a"}
    assert held["a"] is not None
    assert held["a"].isdecimal()


async def test_what_does_not_exist_cannot_be_claimed(homes: Homes) -> None:
    home = await homes.open()
    with pytest.raises(ExecutionNotFound, match=r"no execution nothing in .*`noetl list`"):
        await home.owners.claim("nothing")
    await home.owners.release("nothing")


async def test_a_note_reaches_the_owner_once(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    for name, owner in (("a", mine), ("b", other)):
        await mine.log.append(decision(name, 0, 1, row=row(name, owner=owner.owners.me)))
    assert list(await mine.inbox.collect()) == []
    await other.inbox.leave("a", "pause", {"reason": "lunch", "n": [1, {"x": None}]})
    await other.inbox.leave("b", "cancel", {})
    await other.inbox.leave("a", "resume", {})
    notes = await mine.inbox.collect()
    assert [(note.execution_id, note.kind, note.fields) for note in notes] == [
        ("a", "pause", {"reason": "lunch", "n": [1, {"x": None}]}),
        ("a", "resume", {}),
    ]
    assert notes[0].note_id < notes[1].note_id
    assert list(await mine.inbox.collect()) == []
    assert [note.kind for note in await other.inbox.collect()] == ["cancel"]
    assert list(await other.inbox.collect()) == []


async def test_a_note_waits_for_an_owner(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    await mine.log.append(decision("a", 0, 1))
    await other.inbox.leave("a", "cancel", {})
    assert list(await mine.inbox.collect()) == []
    await mine.owners.claim("a")
    assert [note.kind for note in await mine.inbox.collect()] == ["cancel"]


async def test_no_note_to_what_does_not_exist(homes: Homes) -> None:
    home = await homes.open()
    with pytest.raises(ExecutionNotFound, match="no execution nothing in"):
        await home.inbox.leave("nothing", "cancel", {})


async def test_a_note_wakes_who_waits_for_it(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    for name, owner in (("a", mine), ("b", other)):
        await mine.log.append(decision(name, 0, 1, row=row(name, owner=owner.owners.me)))
    waiting = asyncio.ensure_future(mine.inbox.waits(600))
    await other.inbox.leave("b", "cancel", {})
    assert await other.inbox.waits(600)
    assert not waiting.done(), "that note was for another"
    await other.inbox.leave("a", "pause", {})
    assert await waiting
    assert [note.kind for note in await mine.inbox.collect()] == ["pause"]


async def test_a_note_left_before_is_not_waited_for(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    await mine.log.append(decision("a", 0, 1, row=row("a", owner=mine.owners.me)))
    await other.inbox.leave("a", "pause", {})
    assert await mine.inbox.waits(600)
    assert len(await mine.inbox.collect()) == 1
    await mine.inbox.leave("a", "resume", {})  # from the same process
    assert await mine.inbox.waits(600)


@pytest.mark.parametrize("timeout", [0, 0.01])
async def test_waiting_ends_without_a_note(homes: Homes, timeout: float) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0, 1, row=row("a", owner=home.owners.me)))
    assert not await home.inbox.waits(timeout)
    assert not await home.inbox.waits(timeout)


async def test_many_notes_while_somebody_waits(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    await mine.log.append(decision("a", 0, 1, row=row("a", owner=mine.owners.me)))

    async def hear() -> list[int]:
        heard: list[int] = []
        while len(heard) < 40:
            await mine.inbox.waits(600)
            heard += [note.fields["n"] for note in await mine.inbox.collect()]
        return heard

    hearing = asyncio.ensure_future(hear())
    for n in range(40):
        await (mine, other)[n % 2].inbox.leave("a", "pause", {"n": n})
    assert await hearing == list(range(40))


@pytest.mark.rule("SRV-3")
async def test_what_nobody_goes_on_with_is_adopted_oldest_first(homes: Homes) -> None:
    dead, mine, other = [await homes.open() for _ in range(3)]
    for name, owner, ended in (
        ("left", dead, None),
        ("kept", other, None),
        ("ended", dead, 5),
        ("free", None, None),
        ("left too", dead, None),
        ("ended freely", None, 5),
    ):
        me = None if owner is None else owner.owners.me
        begun = row(name, owner=me, finished_at=ended)
        await (owner or dead).log.append(decision(name, 0, 1, row=begun))
    assert (await mine.owners.adopt(10)).execution_ids == ["free"], "the others have live owners"
    await mine.owners.release("free")
    await homes.kill(dead)
    first = await mine.owners.adopt(2)
    assert first.execution_ids == ["left", "free"]
    second = await other.owners.adopt(10)
    assert second.execution_ids == ["left too"]
    assert 0 < first.term < second.term
    held = {name: await owner_of(other, name) for name in ("left", "free", "left too", "kept")}
    assert held == {
        "left": mine.owners.me,
        "free": mine.owners.me,
        "left too": other.owners.me,
        "kept": other.owners.me,
    }
    nothing = await mine.owners.adopt(10)
    assert (nothing.term, nothing.execution_ids) == (0, [])


@pytest.mark.rule("SRV-3")
async def test_of_many_that_adopt_at_once_each_execution_goes_to_one(homes: Homes) -> None:
    opened = [await homes.open() for _ in range(3)]
    for n in range(30):
        await opened[0].log.append(decision(f"e{n}", 0, 1))
    taken: list[str] = []
    terms: list[int] = []
    while len(taken) < 30:
        adoptions = await asyncio.gather(*(home.owners.adopt(4) for home in opened))
        for home, adoption in zip(opened, adoptions, strict=True):
            taken += adoption.execution_ids
            terms += [adoption.term] if adoption.execution_ids else []
            for name in adoption.execution_ids:
                assert await home.owners.owner_of(name) == home.owners.me
    assert sorted(taken) == sorted(f"e{n}" for n in range(30))
    assert len(set(terms)) == len(terms)


@pytest.mark.rule("SRV-3")
async def test_terms_only_grow(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    drawn = [await mine.owners.term(), await other.owners.term()]
    await mine.log.append(decision("a", 0, 1))
    drawn.append((await other.owners.adopt(1)).term)
    drawn.append(await mine.owners.term())
    assert drawn == sorted(set(drawn))
    assert drawn[0] > 0
    at_once = await asyncio.gather(*((mine, other)[n % 2].owners.term() for n in range(20)))
    assert len(set(at_once)) == 20
    assert min(at_once) > drawn[-1]


@pytest.mark.rule("SRV-3")
async def test_who_leaves_gives_up_everything_at_once(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    for name, owner in (("a", mine), ("b", other), ("c", mine)):
        await owner.log.append(decision(name, 0, 1, row=row(name, owner=owner.owners.me)))
    await mine.owners.leave()
    assert [await owner_of(other, name) for name in ("a", "b", "c")] == [
        None,
        other.owners.me,
        None,
    ]
    assert (await other.owners.adopt(10)).execution_ids == ["a", "c"]
    await mine.owners.leave()
    assert await owner_of(mine, "a") == other.owners.me


async def test_the_token_of_the_live_owner(homes: Homes) -> None:
    dead, mine = await homes.open(), await homes.open()
    for name, owner in (("a", mine), ("b", dead), ("c", None)):
        me = None if owner is None else owner.owners.me
        await (owner or mine).log.append(decision(name, 0, 1, row=row(name, owner=me)))
    await homes.kill(dead)
    found = [await mine.owners.owner_of(name) for name in ("a", "b", "c", "nothing")]
    assert found == [mine.owners.me, None, None, None]
