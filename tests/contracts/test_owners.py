"""What processes that share a home promise each other."""

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
