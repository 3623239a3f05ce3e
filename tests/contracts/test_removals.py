"""How executions leave a storage, and what keeps them in it (KEEP-1)."""

import pytest
from tests.contracts.homes import Homes, decision, row

from noetl.ports.event_log import PrintedLine
from noetl.ports.storage import Storage

EVER = 1 << 52


async def begin(home: Storage, execution_id: str, **fields: object) -> None:
    await home.log.append(decision(execution_id, 0, 1, row=row(execution_id, **fields)))


async def end(home: Storage, execution_id: str, at: int, **fields: object) -> None:
    await begin(home, execution_id, status="completed", finished_at=at, **fields)


async def names(home: Storage) -> list[str]:
    return [found.execution_id for found in await home.executions.page()]


async def ended(home: Storage, before: int, **asked: object) -> list[str]:
    found = await home.removals.ended(before, **asked)  # type: ignore[arg-type]
    return [one.execution_id for one in found]


def line(execution_id: str, number: int) -> PrintedLine:
    return PrintedLine(
        execution_id=execution_id,
        step="s",
        task_run_id="3.1",
        attempt=1,
        at=number,
        stream="stdout",
        text=f"{number}",
    )


@pytest.mark.rule("KEEP-1")
async def test_what_ended_is_listed_by_its_end_without_children(homes: Homes) -> None:
    home = await homes.open()
    await end(home, "b", 30)
    await end(home, "a", 30)
    await end(home, "c", 10)
    await end(home, "child", 5, parent_execution_id="c")
    await end(home, "orphan", 6, parent_execution_id="gone")
    await begin(home, "runs")
    assert await ended(home, 40) == ["orphan", "c", "a", "b"]
    assert await ended(home, 30) == ["orphan", "c"]
    assert await ended(home, 40, since=10, after="c") == ["a", "b"]
    assert await ended(home, 40, since=30, after="a") == ["b"]
    assert await ended(home, 40, limit=2) == ["orphan", "c"]
    found = (await home.removals.ended(40, limit=1))[0]
    assert (found.path, found.status, found.finished_at) == ("demo/hello", "completed", 6)
    assert found.digest == "d1"


@pytest.mark.rule("KEEP-1", "RES-4")
async def test_a_family_goes_at_once_and_its_rows_bit_by_bit(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    await end(home, "old", 100)
    await end(home, "child", 50, parent_execution_id="old")
    await end(home, "below", 50, parent_execution_id="child")
    await end(home, "new", 200)
    for seq in range(1, 5):
        await home.log.append(decision("old", seq, snapshot=b"state"))
    await home.inbox.leave("old", "cancel", {})
    for name in ("old", "new"):
        for number in range(4):
            home.printed.keep(line(name, number))
    assert len(await home.printed.read("old")) == 4
    assert await home.removals.family("old") == ["old", "child", "below"]
    assert await home.removals.remove("old") == ["old", "child", "below"]
    assert await home.removals.remove("old") == await home.removals.family("old") == []
    assert await names(other) == ["new"]
    assert await home.executions.find("old") is None
    assert await home.log.snapshot("old") is None
    assert sorted(await other.removals.left(EVER)) == ["below", "child", "old"]
    assert await other.removals.left(1) == []
    steps = [await home.removals.clear("old", most=2) for _ in range(3)]
    assert steps == [False, False, True]
    assert list(await home.log.read("old")) == []
    assert list(await home.printed.read("old")) == []
    assert len(await home.printed.read("new")) == 4
    assert sorted(await home.removals.left(EVER)) == ["below", "child"]
    assert await home.removals.clear("old")


@pytest.mark.rule("KEEP-1")
async def test_nothing_goes_while_a_part_of_its_family_runs(homes: Homes) -> None:
    home = await homes.open()
    await end(home, "parent", 1)
    await end(home, "child", 1, parent_execution_id="parent")
    await begin(home, "below", parent_execution_id="child")  # nobody waits for it (TOOL-1)
    assert await home.removals.family("parent") == await home.removals.remove("parent") == []
    done = row("below", status="completed", finished_at=2, parent_execution_id="child")
    await home.log.append(decision("below", 1, row=done))
    assert await home.removals.remove("parent") == ["parent", "child", "below"]


@pytest.mark.rule("KEEP-1", "RST-3")
async def test_what_a_restart_refers_to_stays_with_all_below_it(homes: Homes) -> None:
    home = await homes.open()
    await end(home, "first", 1)
    await end(home, "child", 1, parent_execution_id="first")
    await end(home, "below", 1, parent_execution_id="child")
    await end(home, "again", 1, origin_execution_id="first")
    await end(home, "third", 9, origin_execution_id="again")
    await end(home, "taken-up", 9, origin_execution_id="below")
    assert await home.removals.remove("first") == await home.removals.remove("again") == []
    assert await home.removals.remove("third") == ["third"]
    assert await home.removals.remove("again") == ["again"]
    assert await home.removals.remove("first") == []
    assert await home.removals.remove("taken-up") == ["taken-up"]
    assert await home.removals.remove("first") == ["first", "child", "below"]


@pytest.mark.rule("KEEP-1", "RST-3")
async def test_bodies_stay_for_a_restart_that_came_in_the_same_moment(homes: Homes) -> None:
    home = await homes.open()
    await end(home, "first", 1)
    assert await home.removals.remove("first") == ["first"]
    await end(home, "again", 2, origin_execution_id="first")
    assert await home.removals.left(EVER) == []
    assert await home.removals.remove("again") == ["again"]
    assert sorted(await home.removals.left(EVER)) == ["again", "first"]


@pytest.mark.rule("KEEP-1")
async def test_removed_executions_are_known_until_they_are_forgotten(homes: Homes) -> None:
    home = await homes.open()
    await end(home, "a", 1)
    await end(home, "b", 1)
    for name in ("a", "b"):
        await home.removals.remove(name)
    assert await home.removals.clear("a")
    assert await home.removals.is_removed("a")
    assert not await home.removals.is_removed("c")
    assert await home.removals.forget(1) == 0
    assert await home.removals.forget(EVER) == 1  # of b something is left
    assert not await home.removals.is_removed("a")
    assert await home.removals.is_removed("b")
