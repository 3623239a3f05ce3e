"""What every log promises."""

import asyncio
from typing import Any

import msgspec
import pytest
from tests.contracts.homes import Homes, answer_of, decision, row

from noetl.errors import VersionConflict
from noetl.ports.event_log import LogRow, Snapshot


def spans(rows: Any) -> list[tuple[int, int]]:
    return [(found.first, found.last) for found in rows]


@pytest.mark.rule("EVT-3")
@pytest.mark.parametrize("alone", [True, False])
async def test_what_was_appended_is_read_in_order(homes: Homes, alone: bool) -> None:
    home = await homes.open()
    made = [decision("a", 0, 3), decision("a", 3, 4), decision("a", 4, 9)]
    for each in made:
        await home.log.append(each, alone=alone)
    expected = [LogRow(each.expected + 1, each.last, each.at, each.events) for each in made]
    assert list(await home.log.read("a")) == expected
    assert list(await home.log.read("a")) == expected, "what was read once never changes"


async def test_appends_take_effect_in_the_order_of_calls(homes: Homes) -> None:
    home = await homes.open()
    waiting = [home.log.append(decision("a", n)) for n in range(500)]
    waiting.append(home.log.append(decision("a", 500), alone=True))
    await asyncio.gather(*waiting)
    assert spans(await home.log.read("a")) == [(n + 1, n + 1) for n in range(501)]
    found = await home.executions.find("a")
    assert found is not None
    assert (found.seq, found.updated_at) == (501, 5501)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 63, 64, 65, 511, 512, 513, 1100, 4200])
async def test_batches_of_any_size(homes: Homes, count: int) -> None:
    home = await homes.open()
    begun = [home.log.append(decision(f"e{n}", 0, 2)) for n in range(count)]
    gone_on = [home.log.append(decision(f"e{n}", 2, 3)) for n in range(count)]
    ended = [
        home.log.append(decision(f"e{n}", 3, 5, row=row(f"e{n}", status="completed", owner=None)))
        for n in range(count)
    ]
    await asyncio.gather(*begun, *gone_on, *ended)
    rows = await home.executions.page(limit=count + 1)
    assert {(found.execution_id, found.seq, found.status) for found in rows} == {
        (f"e{n}", 5, "completed") for n in range(count)
    }
    for n in {0, count // 2, count - 1}:
        assert spans(await home.log.read(f"e{n}")) == [(1, 2), (3, 3), (4, 5)]


@pytest.mark.parametrize(
    ("after", "limit", "expected"),
    [
        (0, 1000, [(1, 3), (4, 4), (5, 9)]),
        (1, 1000, [(1, 3), (4, 4), (5, 9)]),
        (2, 1, [(1, 3)]),
        (3, 1000, [(4, 4), (5, 9)]),
        (4, 1000, [(5, 9)]),
        (6, 1000, [(5, 9)]),
        (8, 1000, [(5, 9)]),
        (9, 1000, []),
        (50, 1000, []),
        (0, 2, [(1, 3), (4, 4)]),
    ],
)
async def test_reading_begins_with_the_row_that_holds_the_next_event(
    homes: Homes, after: int, limit: int, expected: list[tuple[int, int]]
) -> None:
    home = await homes.open()
    await home.log.append(decision("b", 0, 30))
    for each in (decision("a", 0, 3), decision("a", 3, 4), decision("a", 4, 9)):
        await home.log.append(each)
    assert spans(await home.log.read("a", after=after, limit=limit)) == expected


async def test_an_unknown_execution_has_an_empty_log(homes: Homes) -> None:
    home = await homes.open()
    assert list(await home.log.read("nobody")) == []
    assert await home.log.snapshot("nobody") is None


@pytest.mark.rule("EVT-3")
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(
    ("stored", "late"),
    [
        pytest.param([(0, 2)], (0, 1), id="exists already"),
        pytest.param([(0, 2)], (1, 3), id="behind"),
        pytest.param([(0, 2)], (3, 4), id="ahead"),
        pytest.param([], (4, 5), id="never begun"),
    ],
)
async def test_a_decision_on_another_state_is_refused(
    homes: Homes, alone: bool, stored: list[tuple[int, int]], late: tuple[int, int]
) -> None:
    home = await homes.open()
    for expected, last in stored:
        await home.log.append(decision("a", expected, last))
    with pytest.raises(VersionConflict, match=r"execution a is at .* load it again"):
        await home.log.append(decision("a", *late), alone=alone)
    assert spans(await home.log.read("a")) == [(expected + 1, last) for expected, last in stored]


async def test_a_changed_row_comes_with_the_check_too(homes: Homes) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0, 2))
    late = decision("a", 1, 2, row=row("a", status="completed"))
    assert await answer_of(home.log.append(late)) == "VersionConflict"
    found = await home.executions.find("a")
    assert found is not None
    assert (found.status, found.seq) == ("running", 2)


async def test_a_conflict_refuses_the_followers_and_nobody_else(homes: Homes) -> None:
    mine, other = await homes.open(), await homes.open()
    await mine.log.append(decision("a", 0, 5))
    # The other process writes two events, just as many as the decision that comes too late.
    await other.log.append(decision("a", 5, 7))
    waiting = [
        mine.log.append(decision("b", 0, 1)),
        mine.log.append(decision("a", 5, 7)),
        mine.log.append(decision("b", 1, 2)),
        mine.log.append(decision("a", 7, 9)),  # would fit by its number alone
        mine.log.append(decision("c", 0, 1)),
        mine.log.append(decision("a", 9, 10)),
    ]
    answers = [await answer_of(each) for each in waiting]
    assert answers == ["ok", "VersionConflict", "ok", "VersionConflict", "ok", "VersionConflict"]
    assert spans(await mine.log.read("a")) == [(1, 5), (6, 7)]
    assert spans(await mine.log.read("b")) == [(1, 1), (2, 2)]
    assert spans(await mine.log.read("c")) == [(1, 1)]


@pytest.mark.parametrize("alone", [True, False])
async def test_refused_until_the_caller_has_loaded_again(homes: Homes, alone: bool) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0, 2))
    assert await answer_of(home.log.append(decision("a", 1, 2), alone=alone)) == "VersionConflict"
    assert await answer_of(home.log.append(decision("a", 2, 3), alone=alone)) == "VersionConflict"
    home.log.forget("a")
    assert await answer_of(home.log.append(decision("a", 2, 3), alone=alone)) == "ok"
    assert spans(await home.log.read("a")) == [(1, 2), (3, 3)]


async def test_forgetting_counts_from_its_place_in_the_queue(homes: Homes) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0, 2))
    late = home.log.append(decision("a", 1, 2))
    follower = home.log.append(decision("a", 2, 3))
    home.log.forget("a")
    after = home.log.append(decision("a", 2, 4))
    answers = [await answer_of(each) for each in (late, follower, after)]
    assert answers == ["VersionConflict", "VersionConflict", "ok"]
    assert spans(await home.log.read("a")) == [(1, 2), (3, 4)]


async def test_a_gap_within_a_batch_keeps_what_came_before(homes: Homes) -> None:
    home = await homes.open()
    waiting = [home.log.append(decision("a", *span)) for span in ((0, 2), (2, 3), (5, 6), (3, 4))]
    answers = [await answer_of(each) for each in waiting]
    assert answers == ["ok", "ok", "VersionConflict", "VersionConflict"]
    assert spans(await home.log.read("a")) == [(1, 2), (3, 3)]


async def test_two_processes_race_for_one_execution(homes: Homes) -> None:
    homes_of_two = [await homes.open(), await homes.open()]
    await homes_of_two[0].log.append(decision("a", 0, 1))
    for n in range(1, 20):
        racing = [home.log.append(decision("a", n)) for home in homes_of_two]
        answers = [await answer_of(each) for each in racing]
        assert sorted(answers) == ["VersionConflict", "ok"]
        for home in homes_of_two:
            home.log.forget("a")
    assert spans(await homes_of_two[1].log.read("a")) == [(n, n) for n in range(1, 21)]


@pytest.mark.rule("EVT-5")
async def test_the_latest_snapshot_is_kept(homes: Homes) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0, 1, snapshot=b"one"))
    assert await home.log.snapshot("a") == Snapshot(1, b"one")
    waiting = [
        home.log.append(decision("a", 1, 2, snapshot=b"two")),
        home.log.append(decision("a", 2, 3)),
        home.log.append(decision("a", 3, 5, snapshot=b"\x00three")),
        home.log.append(decision("a", 5, 6)),
    ]
    await asyncio.gather(*waiting)
    assert await home.log.snapshot("a") == Snapshot(5, b"\x00three")


async def test_a_refused_decision_leaves_no_snapshot(homes: Homes) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0, 1, snapshot=b"one"))
    await answer_of(home.log.append(decision("a", 5, 6, snapshot=b"wrong")))
    assert await home.log.snapshot("a") == Snapshot(1, b"one")


async def test_text_of_any_kind_comes_back_as_it_was(homes: Homes) -> None:
    home = await homes.open()
    events = msgspec.json.encode([{"name": "step.done", "result": "Grüße 🎈 \u2028 \x00 '\"\\ 名"}])
    await home.log.append(decision("a", 0, 1, events=events))
    assert [found.events for found in await home.log.read("a")] == [events]


async def test_the_first_decision_must_bring_its_row(homes: Homes) -> None:
    home = await homes.open()
    with pytest.raises(ValueError, match="first decision of a comes without its row"):
        home.log.append(decision("a", 0, 1, row=None))
    assert await home.executions.find("a") is None
