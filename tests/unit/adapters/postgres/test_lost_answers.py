"""A commit without an answer is settled by reading again: committed or not, never both."""

import asyncio
from typing import Any

import pytest
from tests.contracts.homes import PostgresHomes, answer_of, decision, row, taken
from tests.support.postgres import Database
from tests.unit.adapters.postgres.asking import asking, spans, until, writer_of
from tests.unit.adapters.postgres.proxy import Proxy

from noetl.ports.event_log import PrintedLine


def line(text: str, **fields: Any) -> PrintedLine:
    usual: dict[str, Any] = {
        "execution_id": "a",
        "step": "s",
        "task_run_id": "1.1",
        "attempt": 1,
        "at": 1,
    }
    return PrintedLine(**(usual | {"stream": "stdout", "text": text} | fields))


async def begun(homes: PostgresHomes, *names: str) -> Any:
    home = await homes.open()
    await asyncio.gather(*(home.log.append(decision(name, 0)) for name in names))
    return home


@pytest.mark.parametrize("whole_row", [False, True], ids=["lone", "with its row"])
async def test_committed_but_the_answer_was_lost(log_database: Database, whole_row: bool) -> None:
    fields: dict[str, Any] = {"row": row("a", status="completed")} if whole_row else {}
    async with asking(log_database.url) as beside, Proxy(log_database) as proxy:
        homes = PostgresHomes(proxy.database)
        home = await begun(homes, "a")
        await home.log.append(decision("a", 1))  # so that the statement is prepared
        proxy.deaf = True
        commit = home.log.append(decision("a", 2, **fields))
        await until(lambda: beside.fetchval("select true from noetl.execution where seq = 3"))
        assert not commit.done()
        proxy.cut()
        await commit
        await home.log.append(decision("a", 3))
        assert await spans(home, "a") == [(n, n) for n in range(1, 5)]
        await homes.close_all()


async def test_of_a_lost_answer_each_execution_gets_its_own(log_database: Database) -> None:
    async with asking(log_database.url) as beside, Proxy(log_database) as proxy:
        homes, others = PostgresHomes(proxy.database), PostgresHomes(log_database)
        home, other = await begun(homes, "a", "b"), await others.open()
        # Just what this process is about to write, down to the millisecond.
        await other.log.append(decision("b", 1))
        proxy.deaf = True
        waiting = [
            home.log.append(each)
            for each in (decision("a", 1), decision("b", 1), decision("c", 0), decision("b", 2))
        ]
        await until(lambda: beside.fetchval("select true from noetl.execution where seq = 1"))
        proxy.cut()
        answers = [await answer_of(each) for each in waiting]
        assert answers == ["ok", "VersionConflict", "ok", "VersionConflict"]
        for name, last in (("a", 2), ("b", 2), ("c", 1)):
            assert await spans(other, name) == [(n, n) for n in range(1, last + 1)]
        await homes.close_all()
        await others.close_all()


async def test_a_question_that_arrives_late_changes_nothing(log_database: Database) -> None:
    async with Proxy(log_database) as proxy:
        homes = PostgresHomes(proxy.database)
        home = await begun(homes, "a")
        proxy.holding = True
        home.printed.keep(line("once"))
        commit = home.log.append(decision("a", 1))
        await proxy.holds.wait()
        lines = proxy.cut()
        await commit
        await proxy.release(lines)
        assert await spans(home, "a") == [(1, 1), (2, 2)]
        assert [found.text for found in await home.printed.read("a")] == ["once"]
        await homes.close_all()


@pytest.mark.fault("T6")
async def test_a_backend_that_is_ended_in_the_middle(homes: PostgresHomes) -> None:
    home = await begun(homes, "a", "b")
    async with asking(homes.url) as holding, asking(homes.url) as beside:
        lock = holding.transaction()
        await lock.start()
        await holding.execute("select from noetl.execution where execution_id = 'a' for update")
        waiting = [home.log.append(each) for each in (decision("b", 1), decision("a", 1))]
        await beside.execute("select pg_terminate_backend($1)", await writer_of(beside))
        # The writer comes again while the lock is still held.
        coming = asyncio.create_task(writer_of(beside))
        while not coming.done():
            assert not any(each.done() for each in waiting), "confirmed, and cut off before"
            await asyncio.sleep(0)
        waiting.append(home.log.append(decision("a", 2)))
        assert [each.done() for each in waiting] == [False] * 3
        await lock.rollback()
        await asyncio.gather(*waiting)
    assert await spans(home, "a") == [(1, 1), (2, 2), (3, 3)]
    assert await spans(home, "b") == [(1, 1), (2, 2)]


async def test_backends_ended_again_and_again_under_load(homes: PostgresHomes) -> None:
    home = await homes.open()
    names, length = [f"e{n}" for n in range(20)], 40

    async def grow(name: str) -> None:
        for n in range(length):
            await home.log.append(decision(name, n))

    async with asking(homes.url) as beside:
        growing = asyncio.gather(*(grow(name) for name in names))
        ended = 0
        while not growing.done():
            ended += await beside.fetchval(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity"
                " where application_name = 'noetl' and datname = current_database()"
            )
            grown = "select coalesce(sum(seq), 0) >= $1 from noetl.execution"
            goal = min(ended * 15, len(names) * length)
            await until(lambda: beside.fetchval(grown, goal))  # noqa: B023
            await asyncio.sleep(0)
        await growing
    assert ended > 5
    for name in names:
        assert await spans(home, name) == [(n, n) for n in range(1, length + 1)]


async def test_a_note_whose_answer_was_lost_is_left_and_collected_once(
    log_database: Database,
) -> None:
    async with asking(log_database.url) as beside, Proxy(log_database) as proxy:
        homes = PostgresHomes(proxy.database)
        home = await homes.open()
        await home.log.append(decision("a", 0, row=row("a", owner=home.owners.me)))
        await home.inbox.leave("a", "pause", {})  # so that the statements are prepared
        assert [note.kind for note in await taken(home)] == ["pause"]
        proxy.deaf = True
        leaving = asyncio.ensure_future(home.inbox.leave("a", "cancel", {}))
        await until(lambda: beside.fetchval("select true from noetl.note"))
        proxy.cut()
        await leaving
        # Now the deletion gets through, and its answer does not.
        held = beside.transaction()
        await held.start()
        await beside.execute("select from noetl.note for update")
        collecting = asyncio.ensure_future(taken(home))
        async with asking(log_database.url) as watching:
            await writer_of(watching)
            proxy.deaf = True
            await held.rollback()
            await until(lambda: watching.fetchval("select count(*) = 0 from noetl.note"))
        proxy.cut()
        assert [note.kind for note in await collecting] == ["cancel"]
        assert list(await taken(home)) == []
        await homes.close_all()
