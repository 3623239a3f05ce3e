"""What processes that share a home promise each other."""

import asyncio
import math
from typing import Any

import pytest
from tests.contracts.homes import Homes, answer_of, decision, row, taken

from noetl.errors import ExecutionNotFound, HomeInUse
from noetl.ports.event_log import clock


async def owner_of(home: object, execution_id: str) -> str | None:
    found = await home.executions.find(execution_id)  # type: ignore[attr-defined]
    return None if found is None else found.owner


async def test_a_free_execution_is_claimed_and_released(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    assert mine.owners.me != other.owners.me
    await mine.log.append(decision("a", 0, 1))
    assert not await mine.owners.claim("a"), "nobody owned it"
    assert not await mine.owners.claim("a"), "it was ours"
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
    assert await mine.owners.claim("a"), "it was taken over"
    assert await answer_of(other.owners.claim("a")) == "HomeInUse"
    assert await owner_of(other, "a") == mine.owners.me


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("with_row", [True, False])
async def test_a_former_owner_writes_nothing_more(
    homes: Homes, alone: bool, with_row: bool
) -> None:
    """Promise 4: also where nobody else has written since, so that its `seq` is the right one."""
    former, mine = await homes.open(), await homes.open()
    late: dict[str, Any] = {"row": row("a", owner=former.owners.me)} if with_row else {}
    await former.log.append(decision("a", 0, 1, row=row("a", owner=former.owners.me)))
    await former.owners.release("a")
    await mine.owners.claim("a")
    refused = former.log.append(decision("a", 1, **late), alone=alone)
    assert await answer_of(refused) == "VersionConflict"
    assert await answer_of(former.log.append(decision("b", 0))) == "ok", "nobody else is harmed"
    assert await owner_of(mine, "a") == mine.owners.me
    assert await answer_of(mine.log.append(decision("a", 1), alone=alone)) == "ok"
    assert [one.last for one in await mine.log.read("a")] == [1, 2]


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


async def test_what_a_process_owns_and_for_how_long(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    assert mine.owners.sure_until == math.inf, "it owns nothing"
    assert await mine.owners.owned() == []
    for name, owner, ended in (
        ("b", mine, None),
        ("a", mine, None),
        ("c", mine, 5),
        ("d", other, None),
    ):
        begun = row(name, owner=owner.owners.me, finished_at=ended)
        await owner.log.append(decision(name, 0, 1, row=begun))
    assert await mine.owners.owned() == ["b", "a"]
    assert mine.owners.sure_until > clock()
    assert mine.owners.lapses == 0
    await homes.kill(other)
    await mine.owners.claim("d")
    await mine.owners.release("b")
    assert await mine.owners.owned() == ["a", "d"]


async def test_what_does_not_exist_cannot_be_claimed(homes: Homes) -> None:
    home = await homes.open()
    with pytest.raises(ExecutionNotFound, match=r"no execution nothing in .*`noetl list`"):
        await home.owners.claim("nothing")
    await home.owners.release("nothing")


async def test_a_note_reaches_the_owner(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    for name, owner in (("a", mine), ("b", other)):
        await mine.log.append(decision(name, 0, 1, row=row(name, owner=owner.owners.me)))
    assert list(await taken(mine)) == []
    await other.inbox.leave("a", "pause", {"reason": "lunch", "n": [1, {"x": None}]})
    await other.inbox.leave("b", "cancel", {})
    await other.inbox.leave("a", "resume", {})
    notes = await taken(mine)
    assert [(note.execution_id, note.kind, note.fields) for note in notes] == [
        ("a", "pause", {"reason": "lunch", "n": [1, {"x": None}]}),
        ("a", "resume", {}),
    ]
    assert notes[0].note_id < notes[1].note_id
    assert list(await taken(mine)) == []
    assert [note.kind for note in await taken(other)] == ["cancel"]
    assert list(await taken(other)) == []


async def test_a_note_stays_until_it_is_discarded(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    await mine.log.append(decision("a", 0, 1, row=row("a", owner=mine.owners.me)))
    for kind in ("pause", "resume", "cancel"):
        await other.inbox.leave("a", kind, {})
    first = list(await mine.inbox.waiting())
    assert list(await mine.inbox.waiting()) == first, "shown is not taken"
    await mine.inbox.discard([first[1].note_id])
    assert list(await mine.inbox.waiting()) == [first[0], first[2]]
    await mine.inbox.discard([first[1].note_id, first[2].note_id])
    await mine.inbox.discard([])
    assert list(await mine.inbox.waiting()) == [first[0]]
    await homes.kill(mine)
    assert await other.owners.claim("a")
    assert list(await other.inbox.waiting()) == [first[0]], "whoever takes over finds it"


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(
    "more",
    [{}, {"snapshot": b"s"}, {"row": row("a", status="cancelled", owner=None, finished_at=9)}],
    ids=["lone", "snapshot", "row"],
)
async def test_a_note_goes_with_the_decision_that_obeys_it(
    homes: Homes, alone: bool, more: dict[str, Any]
) -> None:
    mine, other = await homes.open(), await homes.open()
    for name in ("a", "b"):
        await mine.log.append(decision(name, 0, 1, row=row(name, owner=mine.owners.me)))
    for name in ("a", "a", "b"):
        await other.inbox.leave(name, "pause", {})
    notes = await mine.inbox.waiting()
    obeyed = tuple(note.note_id for note in notes[:2])
    await mine.log.append(decision("a", 1, 2, notes=obeyed, **more), alone=alone)
    assert list(await mine.inbox.waiting()) == [notes[2]]


async def test_a_refused_decision_leaves_the_note(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    for name in ("a", "b"):
        await mine.log.append(decision(name, 0, 1, row=row(name, owner=mine.owners.me)))
        await other.inbox.leave(name, "cancel", {})
    first, second = await mine.inbox.waiting()
    await mine.log.append(decision("a", 1, 2))
    waiting = [
        mine.log.append(decision("a", 1, 2, notes=(first.note_id,))),
        mine.log.append(decision("b", 1, 2, notes=(second.note_id,))),
        mine.log.append(decision("a", 2, 3, notes=(first.note_id,))),
    ]
    answers = [await answer_of(each) for each in waiting]
    assert answers == ["VersionConflict", "ok", "VersionConflict"]
    assert list(await mine.inbox.waiting()) == [first]
    mine.log.forget("a")
    await mine.log.append(decision("a", 2, 3, notes=(first.note_id,)), alone=True)
    assert list(await mine.inbox.waiting()) == []


async def test_many_decisions_obey_at_once(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    names = [f"e{n}" for n in range(70)]
    for name in names:
        await mine.log.append(decision(name, 0, 1, row=row(name, owner=mine.owners.me)))
        await other.inbox.leave(name, "cancel", {})
    waiting = {note.execution_id: note.note_id for note in await mine.inbox.waiting()}
    assert list(waiting) == names
    commits = [mine.log.append(decision(name, 1, 2, notes=(waiting[name],))) for name in names[:-1]]
    await asyncio.gather(*commits)
    assert [note.execution_id for note in await mine.inbox.waiting()] == names[-1:]


async def test_what_was_shown_wakes_nobody(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    await mine.log.append(decision("a", 0, 1, row=row("a", owner=mine.owners.me)))
    await other.inbox.leave("a", "pause", {})
    assert await mine.inbox.waits(600)
    assert len(await mine.inbox.waiting()) == 1
    assert not await mine.inbox.waits(0)
    await other.inbox.leave("a", "resume", {})
    assert await mine.inbox.waits(600)
    assert [note.kind for note in await mine.inbox.waiting()] == ["pause", "resume"]


async def test_a_note_waits_for_an_owner(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    await mine.log.append(decision("a", 0, 1))
    await other.inbox.leave("a", "cancel", {})
    assert list(await taken(mine)) == []
    await mine.owners.claim("a")
    assert [note.kind for note in await taken(mine)] == ["cancel"]


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
    assert [note.kind for note in await taken(mine)] == ["pause"]


async def test_a_note_left_before_is_not_waited_for(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    await mine.log.append(decision("a", 0, 1, row=row("a", owner=mine.owners.me)))
    await other.inbox.leave("a", "pause", {})
    assert await mine.inbox.waits(600)
    assert len(await taken(mine)) == 1
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
            heard += [note.fields["n"] for note in await taken(mine)]
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
