"""When the writer commits, and what it does when it cannot."""

import asyncio
from typing import Any

import pytest
from tests.contracts.homes import PostgresHomes, answer_of, decision, row, taken
from tests.unit.adapters.postgres.asking import asking, commits_of, spans, until, writer_of
from tests.unit.adapters.postgres.test_lost_answers import line

from noetl.adapters.postgres.columns import storable
from noetl.errors import LogUnavailable
from noetl.ports.event_log import Snapshot


async def test_what_waits_shares_the_next_commit(homes: PostgresHomes) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0))
    async with asking(homes.url) as holding, asking(homes.url) as beside:
        lock = holding.transaction()
        await lock.start()
        await holding.execute("select from noetl.execution for update")
        first = home.log.append(decision("a", 1))
        await writer_of(beside)
        waiting = [home.log.append(decision("a", n)) for n in range(2, 1001)]
        before = await commits_of(beside, home)
        await lock.rollback()
        await asyncio.gather(first, *waiting)
        assert await commits_of(beside, home) == before + 2, "the one held, one for all the rest"
    assert await spans(home, "a") == [(n, n) for n in range(1, 1002)]


async def test_ten_thousand_decisions_of_a_thousand_executions(homes: PostgresHomes) -> None:
    home = await homes.open()
    async with asking(homes.url) as beside:
        waiting = [
            home.log.append(decision(f"e{n}", seq, row=row(f"e{n}") if seq in (0, 9) else None))
            for seq in range(10)
            for n in range(1000)
        ]
        await asyncio.gather(*waiting)
        assert await commits_of(beside, home) == 3
        counted = await beside.fetch(
            "select seq, count(*) from noetl.execution group by seq"
            " union all select first_seq, count(*) from noetl.decision group by first_seq"
        )
    assert sorted(map(tuple, counted)) == sorted([(10, 1000)] + [(n, 1000) for n in range(1, 11)])


async def test_two_writers_at_many_executions_in_different_order(homes: PostgresHomes) -> None:
    pair = [await homes.open(), await homes.open()]
    names = [f"e{n}" for n in range(30)]
    await asyncio.gather(*(pair[0].log.append(decision(name, 0)) for name in names))
    for n in range(1, 15):
        asked = [
            (name, home.log.append(decision(name, n)))
            for home, order in zip(pair, (names, names[::-1]), strict=True)
            for name in order
        ]
        answers = [(name, await answer_of(commit)) for name, commit in asked]
        for name in names:
            assert sorted(answer for known, answer in answers if known == name) == [
                "VersionConflict",
                "ok",
            ]
        for home in pair:
            for name in names:
                home.log.forget(name)
    for name in names:
        assert await spans(pair[0], name) == [(n, n) for n in range(1, 16)]


async def test_a_writer_that_waits_for_another_is_told_the_truth(homes: PostgresHomes) -> None:
    home = await homes.open()
    await asyncio.gather(*(home.log.append(decision(name, 0)) for name in ("a", "b")))
    async with asking(homes.url) as holding, asking(homes.url) as beside:
        lock = holding.transaction()
        await lock.start()
        await holding.execute("update noetl.execution set seq = 2 where execution_id = 'a'")
        waiting = [home.log.append(each) for each in (decision("b", 1), decision("a", 1))]
        await writer_of(beside)
        await lock.commit()
        assert [await answer_of(each) for each in waiting] == ["ok", "VersionConflict"]
    assert str(waiting[1].exception()) == (
        "execution a is at 2, not at 1: another writer was first; load it again and decide again"
    )


async def test_one_bad_decision_does_not_harm_the_others(homes: PostgresHomes) -> None:
    home = await homes.open()
    await home.log.append(decision("bad", 0))
    home.printed.keep(line("a line"))
    waiting = [
        home.log.append(each)
        for each in (
            decision("a", 0),
            decision("bad", 1, at=2**70),
            decision("a", 1),
            decision("bad", 2),
            decision("worse", 0, events=b"\xff"),
            decision("apart\x1f", 0),
            decision("", 0),
            decision("worst", 0, events=b"[\x1f]"),
        )
    ]
    answers = [await answer_of(each) for each in waiting]
    assert answers == ["ok", "LogUnavailable", "ok", *["LogUnavailable"] * 5]
    assert await spans(home, "a") == [(1, 1), (2, 2)]
    assert await spans(home, "bad") == [(1, 1)]
    assert [found.text for found in await home.printed.read("a")] == ["a line"]


async def test_a_read_only_database_refuses_clearly(homes: PostgresHomes) -> None:
    async with asking(homes.url) as beside:
        name = await beside.fetchval("select current_database()")
        await beside.execute(f"alter database {name} set default_transaction_read_only = on")
    home = await homes.open()
    with pytest.raises(LogUnavailable, match=r"is read-only; use its primary server and run"):
        await home.log.append(decision("a", 0))
    with pytest.raises(LogUnavailable, match=r"is read-only; use its primary server and try"):
        await home.playbooks.keep("d", "p", "text", None)
    assert await home.executions.find("a") is None


async def test_tables_that_are_gone_are_named(homes: PostgresHomes) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0))
    async with asking(homes.url) as beside:
        await beside.execute("drop table noetl.decision cascade")
    with pytest.raises(LogUnavailable, match=r"the tables at .* are gone: .*noetl\.decision"):
        await home.log.append(decision("a", 1))
    with pytest.raises(LogUnavailable, match=r"the tables at .* are gone"):
        await home.log.read("a")


async def test_a_process_that_was_struck_out_comes_again(homes: PostgresHomes) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0))
    async with asking(homes.url) as beside:
        await beside.execute("delete from noetl.process")
        await asyncio.gather(*(home.log.append(decision("a", n)) for n in (1, 2)))
        assert await beside.fetchval("select token from noetl.process") == home.owners.me
    assert await spans(home, "a") == [(1, 1), (2, 2), (3, 3)]


async def test_closing_writes_what_was_queued(homes: PostgresHomes) -> None:
    home = await homes.open()
    waiting = [home.log.append(decision("a", n)) for n in range(50)]
    home.printed.keep(line("last words"))
    await home.close()
    await home.close()
    assert [await answer_of(each) for each in waiting] == ["ok"] * 50
    assert await answer_of(home.log.append(decision("a", 50))) == "LogUnavailable"
    with pytest.raises(LogUnavailable, match=r"the home at postgresql://.* is closed"):
        await home.executions.find("a")
    with pytest.raises(LogUnavailable, match=r"is closed"):
        await home.inbox.leave("a", "cancel", {})
    home.log.forget("a")
    again = await homes.open()
    assert len(await again.log.read("a")) == 50
    assert [found.text for found in await again.printed.read("a")] == ["last words"]


async def test_lines_ride_with_the_next_commit(homes: PostgresHomes) -> None:
    home, other = await homes.open(), await homes.open()
    await home.log.append(decision("a", 0))
    async with asking(homes.url) as beside:
        before = await commits_of(beside, home)
        home.printed.keep(line("hello"))
        await home.log.append(decision("a", 1))
        assert await commits_of(beside, home) == before + 1
    assert [found.text for found in await other.printed.read("a")] == ["hello"]


async def test_a_flood_of_lines_does_not_wait_for_a_decision(homes: PostgresHomes) -> None:
    home = await homes.open()
    for n in range(1000):
        home.printed.keep(line(f"{n}"))
    async with asking(homes.url) as beside:
        await until(lambda: beside.fetchval("select count(*) = 1000 from noetl.printed"))


async def test_what_postgresql_cannot_keep_is_replaced(homes: PostgresHomes) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0, row=row("a", error="nul \0 and \ud800")))
    home.printed.keep(line("nul \0"))
    found = await home.executions.find("a")
    assert found is not None
    assert found.error == "nul \ufffd and ?"
    assert [each.text for each in await home.printed.read("a")] == ["nul \ufffd"]


@pytest.mark.parametrize(
    ("value", "kept"),
    [("plain", "plain"), ("Grüße 🎈", "Grüße 🎈"), ("\0", "\ufffd"), (7, 7), (None, None)],
)
def test_storable(value: Any, kept: Any) -> None:
    assert storable(value) == kept


async def test_a_large_snapshot_and_large_events(homes: PostgresHomes) -> None:
    home = await homes.open()
    body = b'[{"name":"step.done","result":"' + b"x" * 3_000_000 + b'"}]'
    waiting = [
        home.log.append(decision("a", n, events=body, snapshot=body if n == 9 else None))
        for n in range(10)
    ]
    await asyncio.gather(*waiting)
    assert await home.log.snapshot("a") == Snapshot(10, body)
    assert {found.events for found in await home.log.read("a")} == {body}


async def test_processes_that_only_read_leave_no_trace(homes: PostgresHomes) -> None:
    home = await homes.open()
    await home.executions.page()
    await taken(home)
    async with asking(homes.url) as beside:
        assert await beside.fetch("select * from noetl.process") == []
